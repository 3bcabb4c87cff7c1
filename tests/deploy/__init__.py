"""What is in `deploy`, judged by the tools that read it for real, and compared with what the code expects.

Owns: reading those files, building the image, the stack on a stand-in of AWS.
May touch: podman, kubectl, ministack, cfn-lint, kubernetes-validate.
Never: a cluster or an account that no test was told to use.
"""
