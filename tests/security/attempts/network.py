"""Out by way of a network: every family of sockets, and the sockets that have names instead of addresses."""

from tests.security.attempt import Attempt, Lack

_NETWORK = frozenset({Lack.NETWORK, Lack.FILTER})

_TCP = """
with socket.create_connection((WORLD["{host}"], WORLD["{port}"]), 30) as talk:
    if WORLD["greeting"] in talk.recv(99).decode():
        got("a listener of the host answered")
"""

_UDP = """
with socket.socket(socket.{family}, socket.SOCK_DGRAM) as talk:
    talk.settimeout(30)
    talk.sendto(b"hello", (WORLD["{host}"], WORLD["{port}"]))
    if WORLD["greeting"] in talk.recv(99).decode():
        got("a listener of the host answered")
"""

ATTEMPTS = (
    Attempt(
        "TCP over IPv4",
        "to talk to a listener on the host's 127.0.0.1",
        _TCP.format(host="ipv4", port="tcp4"),
        _NETWORK,
    ),
    Attempt(
        "TCP over IPv6",
        "to talk to a listener on the host's ::1",
        _TCP.format(host="ipv6", port="tcp6"),
        _NETWORK,
        host_decides=True,
    ),
    Attempt(
        "UDP over IPv4",
        "to get a datagram back from the host's 127.0.0.1",
        _UDP.format(family="AF_INET", host="ipv4", port="udp4"),
        _NETWORK,
    ),
    Attempt(
        "UDP over IPv6",
        "to get a datagram back from the host's ::1",
        _UDP.format(family="AF_INET6", host="ipv6", port="udp6"),
        _NETWORK,
        host_decides=True,
    ),
    Attempt(
        "a name is resolved",
        "to ask a resolver, but only one on a loopback address that the test has opened",
        """
servers = [line.split()[1] for line in content_of("/etc/resolv.conf").decode().splitlines() if "nameserver" in line]
if all(server.startswith("127.") for server in servers):
    got(socket.getaddrinfo(WORLD["unresolved"], 80)[0][4][0])
""",
        _NETWORK | {Lack.RESOLVER},
    ),
    Attempt(
        "raw sockets",
        "to make packets by hand",
        """
socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
got("a raw socket")
""",
        frozenset({Lack.RIGHTS, Lack.FILTER}),
    ),
    Attempt(
        "packet sockets",
        "to listen to a network card",
        """
socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)
got("a packet socket")
""",
        frozenset({Lack.RIGHTS, Lack.FILTER}),
    ),
    Attempt(
        "a socket of any family",
        "families that no namespace separates: vsock reaches the hypervisor, AF_ALG, Bluetooth and others the kernel",
        """
found = set()
for family in range(46):
    for kind in (1, 2, 3, 4, 5):
        try:
            socket.socket(family, kind).close()
        except OSError:
            continue
        found.add(family)
if found - {socket.AF_UNIX}:
    got(sorted(found))
""",
        frozenset({Lack.FILTER}),
    ),
    Attempt(
        "a pair of sockets of any family",
        "the same by way of socketpair, which a filter may have forgotten",
        """
for family in range(46):
    pair = (ctypes.c_int * 2)()
    if family != socket.AF_UNIX and libc.socketpair(family, 1, 0, pair) == -1:
        if ctypes.get_errno() == errno.EOPNOTSUPP:
            got(f"family {family} was asked and has no pairs")
""",
        frozenset({Lack.FILTER}),
    ),
    Attempt(
        "a network card",
        "to see any network interface but the loopback",
        """
cards = [line.split(":")[0].strip() for line in content_of("/proc/net/dev").decode().splitlines()[2:]]
if not set(cards) - {"lo"}:
    raise OSError(errno.ENODEV, "no card but the loopback")
got(cards)
""",
        frozenset({Lack.NETWORK}),
        backends=frozenset({"bubblewrap", "podman"}),  # a pod has one, and a policy that keeps it quiet
        host_decides=True,
    ),
    Attempt(
        "an abstract Unix socket",
        "to talk to a service that has a name and no file",
        """
with socket.socket(socket.AF_UNIX) as talk:
    talk.connect(chr(0) + WORLD["abstract"])
    if WORLD["greeting"] in talk.recv(99).decode():
        got("a listener of the host answered")
""",
        frozenset({Lack.NETWORK}),
    ),
    Attempt(
        "a Unix socket in a file",
        "to talk to docker, podman, D-Bus, an ssh agent or any other socket in sight",
        """
import stat
known = ["/run/docker.sock", "/run/podman/podman.sock", "/run/dbus/system_bus_socket", "/run/systemd/private",
         "/run/containerd/containerd.sock", "/tmp/.X11-unix/X0", *WORLD["sockets"]]
for folder, _, names in everywhere("/usr", "/sys"):
    known += [os.path.join(folder, name) for name in names]
for path in known:
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            socket.socket(socket.AF_UNIX).connect(path)
            got(path)
    except OSError:
        continue
""",
        frozenset({Lack.FOLDER}),
    ),
)
