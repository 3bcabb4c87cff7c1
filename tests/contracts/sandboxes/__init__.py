"""One contract for every sandbox: the list of cases in `suite`, played on each backend by a test file of its own.

Owns: the cases, the stage they are played on, and how each backend is had and hurt from outside.
May touch: the port, the adapters, the lab, podman, kubectl, this machine's processes.
Never: what only one backend does.

Here:                     pytest tests/contracts/sandboxes
On a real cluster:        HUMMINGBIRD_TEST_KUBECONFIG=admin.kubeconfig HUMMINGBIRD_TEST_IMAGE=registry/sandbox:tag \\
                          pytest tests/contracts/sandboxes/test_kubernetes.py tests/contracts/sandboxes/test_pool.py

The kubeconfig must let one make a namespace; the tests make one of their own, enforce the restricted pod security
standard in it, bind the shipped role to a service account, use that account alone, and delete the namespace. The image
is what `hummingbird sandbox build` makes, pushed to where the cluster can pull it. kubectl is needed. Cases about
bounds that a cluster's own configuration sets (processes, memory, space) are skipped there.

Without pytest:           python -m tests.contracts.sandboxes.play bubblewrap|podman|k8s|k8spool [--as UID] [CASE …]
"""
