"""Lines for every rule: one that it must speak for, and one that only looks like it. Shortened or made up."""

from hummingbird.evidence.regions import FailureClass

NETWORK = {
    "dns-failure": (
        "fatal: Could not resolve host: gitlab.example.com",
        "error: could not resolve './missing' from src/index.js",
    ),
    "source-fetch-failed": (
        "fatal: unable to access 'https://git.example.com/a/b.git/': SSL certificate problem: self-signed certificate",
        "fatal: unable to access 'https://git.example.com/a/b.git/': The requested URL returned error: 403",
    ),
    "git-objects-missing": (
        "ref nightly:: Error in git rev-list --stdin: exit status 128 fatal: bad object e6e0c0e52b59",
        "error: cannot call method on bad object reference",
    ),
    "image-pull-failed": (
        'ERROR: Job failed: failed to pull image "r.example.com/a:1": Error response from daemon: Head "x": EOF',
        'ERROR: Job failed: failed to pull image "r.example.com/a:1": manifest unknown',
    ),
    "rate-limited": (
        "error: toomanyrequests: You have reached your pull rate limit",
        "test limits::rate_is_429_free ... FAILED",
    ),
    "package-mirror-failed": (
        "E: Failed to fetch http://deb.example.org/pool/a.deb  Unable to connect to deb.example.org:80:",
        "E: Failed to fetch http://deb.example.org/pool/a.deb  404  Not Found",
    ),
    "package-download-failed": (
        "curl: (56) OpenSSL SSL_read: Connection reset by peer",
        "curl: (22) The requested URL returned error: 404",
    ),
    "tls-failure": (
        "  SSL error: received early EOF; class=Ssl (16); code=Eof (-20)",
        "ssl error: certificate of the test server differs",
    ),
    "certificate-refused": (
        "Error: unable to get local issuer certificate",
        "Checking certificate chain",
    ),
    "server-error": (
        "error: 503 Service Temporarily Unavailable",
        "expected 200 but got 500",
    ),
    "connection-reset": (
        "read tcp 10.0.0.1:443: read: connection reset by peer",
        "{ name = 'test-net-connection-reset.lua' }",
    ),
    "connection-timed-out": (
        "connect to mirror.example.org port 443: Network is unreachable",
        "failed to connect to localhost:5432",
    ),
    "connection-refused": (
        "connect to mirror.example.org: Connection refused",
        "connect to 127.0.0.1:5432: Connection refused",
    ),
}

MACHINE = {
    "test-machine-missing": (
        "Guest provisioning failed: no suitable guest could be provisioned",
        "provision the guest with two disks",
    ),
    "state-locked": (
        "│ Error: Error acquiring the state lock",
        "the door is locked",
    ),
    "pod-never-started": (
        'Unschedulable: "0/1 nodes are available: 1 Insufficient cpu. preemption: no victims"',
        "Waiting for pod runners/runner-1 to be running, status is Pending",
    ),
    "docker-daemon-gone": (
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "Using Docker executor with image a:1",
    ),
    "runner-system-failure": (
        "ERROR: Job failed (system failure): aborted",
        "ERROR: Job failed: exit code 1",
    ),
    "runner-lost": (
        'WARNING: Getting job pod status Get "https://10.0.0.1:443/api": http2: client connection lost',
        "Running on runner-1 via pod-2...",
    ),
    "job-timed-out": (
        "ERROR: Job failed: execution took longer than 2h0m0s seconds",
        "the pod's deadline will be set to the job timeout: 2h0m0s",
    ),
    "disk-full": (
        "LLVM ERROR: IO failure on output stream: No space left on device",
        "error: no space between words left in title",
    ),
    "out-of-memory": (
        "fork: Cannot allocate memory",
        "test memory::allocates_nothing ... FAILED",
    ),
    "heap-exhausted": (
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        "heap snapshot written",
    ),
    "killed-from-outside": (
        "process didn't exit successfully: `rustc --crate-name a` (signal: 9, SIGKILL: kill)",
        "killed_the_dragon event was not sent",
    ),
    "exit-killed": (
        "ERROR: Job failed: exit code 137",
        "ERROR: Job failed: exit code 1 after 137 steps",
    ),
    "compiler-segfault": (
        "error: rustc interrupted by SIGSEGV, printing backtrace",
        "./run_game: Segmentation fault (core dumped)",
    ),
    "compiler-crashed": (
        "error: internal compiler error: unexpected panic",
        "note: the compiler is run in internal mode",
    ),
    "artifacts-not-moved": (
        'ERROR: Uploading artifacts as "archive" to coordinator... 500 Internal Server Error',
        "Uploading artifacts for failed job",
    ),
    "device-trouble": (
        "mount: /dev/loop0: Device or resource busy",
        "the line is busy",
    ),
    "package-lock-held": (
        "E: Could not get lock /var/lib/dpkg/lock-frontend - open",
        "Blocking waiting for file lock on build directory",
    ),
    "git-lock-held": (
        "fatal: Unable to create '/builds/a/.git/index.lock': File exists.",
        "Updating Cargo.lock of git dependency",
    ),
    "build-files-damaged": (
        "error: could not extract: corrupted archive",
        "the cache is not corrupted",
    ),
}

CONFIGURATION = {
    "library-missing": (
        "./unit: error while loading shared libraries: libssl.so.1.1: cannot open shared object file",
        "library of 12 songs",
    ),
    "repository-ownership": (
        "fatal: detected dubious ownership in repository at '/builds/a'",
        "ownership of the repository was transferred",
    ),
    "submodule-broken": (
        "fatal: remote error: upload-pack: not our ref 7d1e4c0a9f",
        "Submodule path 'codec': checked out '7d1e4c0a9f'",
    ),
    "migration-refused": (
        "FAILED: Can't locate revision identified by '8a1f22d0c3e1'",
        "Running migrations: no migrations to apply.",
    ),
    "image-recipe-wrong": (
        "ERROR: failed to solve: dockerfile parse error on line 7: unknown instruction: RUNN",
        "Step 7/9 : COPY a /b",
    ),
    "image-step-failed": (
        '#14 ERROR: process "/bin/sh -c make" did not complete successfully: exit code: 2',
        "#14 DONE 4.1s",
    ),
    "deployment-refused": (
        'error: error validating "service.yaml": error validating data: unknown field "port"',
        "deployment.apps/web configured",
    ),
    "deployment-task-failed": (
        'fatal: [web-1]: FAILED! => {"msg": "no such service"}',
        "web-1 : ok=4 changed=1 unreachable=0 failed=0",
    ),
    "signing-impossible": (
        "error: No profiles for 'com.example.a' were found: Xcode couldn't find any",
        "signing the commit",
    ),
    "package-list-wrong": (
        "error: Installed (but unpackaged) file(s) found:",
        "Installed: a-1.0-1.noarch",
    ),
    "nothing-to-analyse": (
        "CodeQL did not detect any code written in languages supported by CodeQL",
        "no tests were changed",
    ),
    "disk-full-at-start": (
        "bash: line 29: /Users/ci/builds/a/b.tmp/CI_SERVER_TLS_CA_FILE: No space left on device",
        "LLVM ERROR: IO failure on output stream: No space left on device",
    ),
    "quota-used-up": (
        "The job was not started because the spending limit is reached",
        "resource quota of the test fixture",
    ),
    "command-not-found": (
        "/bin/bash: line 12: cmake: command not found",
        "Error: the page was not found in the command index",
    ),
    "tool-part-missing": (
        "error: 'cargo-clippy' is not installed for the toolchain 'nightly-2022-08-18'",
        "component clippy installed for the toolchain",
    ),
    "target-missing": (
        "make: *** No rule to make target 'docs'.  Stop.",
        "target directory is empty",
    ),
    "unknown-option": (
        "error: unknown option `--fasst'",
        "invalid argument in call to parse",
    ),
    "variable-missing": (
        "deploy.sh: line 3: DEPLOY_TOKEN: unbound variable",
        "warning: unused variable: `x`",
    ),
    "pipeline-file-invalid": (
        "(.gitlab-ci.yml): did not find expected key while parsing a block mapping",
        "reading configuration from settings.yaml",
    ),
    "image-not-found": (
        "Error response from daemon: manifest for alpine:99 not found: manifest unknown",
        "INFO[0012] Retrieving image manifest debian:stable-slim",
    ),
    "credential-refused": (
        "fatal: Authentication failed for 'https://git.example.com/a.git/'",
        "Authenticating with credentials from job payload",
    ),
    "push-rejected": (
        "error: failed to push some refs to 'https://git.example.com/a'",
        "pushed 3 refs",
    ),
    "file-permission": (
        "/bin/sh: ./build.sh: Permission denied",
        "test permission_is_denied_to_guests ... FAILED",
    ),
    "wrong-version": (
        "error: package `a v1.0` cannot be built because it requires rustc 1.80 or newer",
        "version 1.80 released",
    ),
    "lock-file-stale": (
        "error: the lock file /a/Cargo.lock needs to be updated but --locked was passed to prevent this",
        "Blocking waiting for file lock on package cache",
    ),
    "dependency-unresolvable": (
        "failed to select a version for `rustls` which could resolve this conflict",
        "Resolved 34 packages, every version is locked",
    ),
    "apt-lists-stale": (
        "E: Failed to fetch http://deb.example.org/pool/a.deb  404  Not Found [IP: 10.0.0.1 80]",
        "GET /missing 404 12 ms",
    ),
    "branch-gone": (
        "fatal: Remote branch topic not found in upstream origin",
        "Switched to a new branch 'topic'",
    ),
    "module-missing": (
        "ModuleNotFoundError: No module named 'yaml'",
        "SKIPPED [2] test_impute.py:302: could not import 'pandas': No module named pandas",
    ),
    "file-missing": (
        "cp: cannot stat '/usr/lib/a.dll': No such file or directory",
        "created directory /usr/lib/a",
    ),
    "configure-failed": (
        "configure: error: C compiler cannot create executables",
        "configure: creating ./config.status",
    ),
    "too-large-to-upload": (
        'ERROR: Uploading artifacts as "archive" to coordinator... 413 Request Entity Too Large',
        "the number is too large",
    ),
    "log-too-long": (
        "The log length has exceeded the limit of 4 MB",
        "log level exceeded",
    ),
}

GATES = {
    "vulnerable-dependency": (
        "Warning: unmaintainederror: 5 vulnerabilities found!",
        "found 0 vulnerabilities",
    ),
    "licence-refused": (
        'Package "a@2.1.0" is licensed under "GPL-3.0" which is not permitted by the --onlyAllow flag.',
        "licenses ok, sources ok",
    ),
    "contribution-rule-broken": (
        "✖   subject may not be empty [subject-empty]",
        "Commit message read from .git/COMMIT_EDITMSG",
    ),
    "policy-refused": (
        "✕ [Violation] sbom.found",
        "Violations: 0, Warnings: 1, Successes: 88",
    ),
}

CODE_GATES = {
    "coverage-too-low": (
        "Coverage 71% is below the required 80%",
        "Coverage report written",
    ),
    "quality-gate-failed": (
        "ERROR: QUALITY GATE STATUS: FAILED - View details on https://sonar.example.com",
        "INFO: waiting for the quality gate",
    ),
    "generated-files-stale": (
        'error: api.yaml is not up to date; run "make generate" and commit the changes',
        "Everything is up to date",
    ),
    "secret-found": (
        "leaks found: 1",
        "no leaks found",
    ),
    "limit-exceeded": (
        "  Package size limit has exceeded by 1.2 kB",
        "  Size limit: 10 kB",
    ),
    "documentation-refused": (
        "Aborted with 1 warnings in strict mode!",
        "build succeeded, 1 warning.",
    ),
}

CODE = CODE_GATES | {
    "sanitizer-finding": (
        "SUMMARY: AddressSanitizer: heap-buffer-overflow src/parser.c:91:12 in parse_header",
        "ERROR SUMMARY: 0 errors from 0 contexts",
    ),
    "program-aborted": (
        "terminate called after throwing an instance of 'std::out_of_range'",
        "the upload was aborted by the user and resumed",
    ),
    "kernel-crashed": (
        "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
        "Linux kernel 6.8 booted",
    ),
    "merge-conflict": (
        "CONFLICT (content): Merge conflict in src/app.py",
        "Auto-merging src/app.py",
    ),
    "rust-error": (
        "error[E0425]: cannot find value `x` in this scope",
        "For more information about this error, try `rustc --explain E0425`.",
    ),
    "compiler-error": (
        "src/main.c:12:5: error: expected ';' before 'return'",
        "src/main.c:12:5: warning: unused variable",
    ),
    "java-error": (
        "[ERROR] /builds/a/src/main/java/A.java:[27,12] incompatible types",
        "[INFO] Compiling 12 source files of java",
    ),
    "swift-error": (
        "❌  /Users/ci/build/A/Source/A.swift:97:2: unknown attribute 'x'",
        "▸ Compiling A.swift",
    ),
    "go-error": (
        "./main.go:12:2: undefined: foo",
        'internal/oss/a.go:19:2: example.com/sdk@v1: Get "https://proxy.example.com/a": connection reset by peer',
    ),
    "symbol-missing": (
        "a.o: in function `main': undefined reference to `draw'",
        "the symbol table has 12 entries",
    ),
    "linking-failed": (
        "error: linking with `cc` failed: exit status: 1",
        "linking 12 objects",
    ),
    "lint-denied": (
        "    = note: `-D unused-must-use` implied by `-D warnings`",
        "warning: build failed, waiting for other jobs to finish...",
    ),
    "linter-finding": (
        "  3:8  error  'showModal' is defined but never used  no-unused-vars",
        "✖ 1 problem (0 errors, 1 warning)",
    ),
    "not-formatted": (
        "Diff in /builds/a/src/lib.rs at line 12:",
        "git diff in progress",
    ),
    "syntax-error": (
        "SyntaxError: invalid syntax",
        "checking the syntax of 12 files",
    ),
    "program-raised": (
        "TypeError: undefined is not a function",
        "test raises_type_error_on_none ... FAILED",
    ),
    "could-not-compile": (
        "error: could not compile `world` due to 2 previous errors",
        "   Compiling world v0.1.0",
    ),
}

CHANCE = {
    "simulator-or-browser-lost": (
        "Disconnected, because no message in 30000 ms.",
        "disconnected from the database",
    ),
    "passed-on-retry": (
        "Flaky: login_page_opens passed on retry",
        "test reports_flaky_networks ... FAILED",
    ),
    "address-in-use": (
        "OSError: [Errno 98] Address already in use",
        "address of the server: 10.0.0.1",
    ),
    "race-detected": (
        "WARNING: DATA RACE",
        "race results printed",
    ),
    "test-timed-out": (
        "Error: timeout of 2000ms exceeded. Ensure the done() callback is being called in this test.",
        "test closes_by_timeout_during_close ... ok",
    ),
    "timing-assertion": (
        "should answer within 200 ms",
        "took 12 ms",
    ),
    "test-crashed": (
        'Error: "Failed to run tests: A segfault occurred while executing tests"',
        "FAIL Bug #72294 Segmentation fault/invalid pointer [ext/tests/bug72294.phpt]",
    ),
}

TESTS = {
    "performance-regressed": (
        "Error: Performance regression detected: parse_large is 37% slower than the baseline",
        "performance report written",
    ),
    "assertion-failed": (
        "AssertionError: 3 != 4",
        "expected output written to a.txt",
    ),
    "test-failed": (
        "test result: FAILED. 84 passed; 1 failed; 0 ignored",
        "test result: ok. 84 passed; 0 failed; 0 ignored",
    ),
    "test-panicked": (
        "thread 'tests::walks' panicked at 'no ground', common/src/a.rs:12:3",
        "thread 'rustc' panicked at 'index out of bounds', compiler/a.rs:5:2",
    ),
}

EXAMPLES = NETWORK | MACHINE | GATES | CONFIGURATION | CODE | CHANCE | TESTS

BLAMED = {
    FailureClass.INFRASTRUCTURE: {*NETWORK, *MACHINE},
    FailureClass.CONFIGURATION: {*CONFIGURATION, *GATES},
    FailureClass.CODE: {*CODE},
    FailureClass.FLAKY: {*CHANCE},
    FailureClass.TEST: {*TESTS},
}
