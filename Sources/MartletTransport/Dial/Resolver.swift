import CMartletLinux
import Glibc
import Synchronization

/// Resolves host names.
public protocol Resolver: Sendable {
    /// Returns the addresses of a host, best first; the connect race interleaves their families (RFC 8305 §4). Called
    /// when a connection is opened, never for address literals. The call should return soon after its task is
    /// cancelled; the result is then ignored.
    /// - Parameters:
    ///   - host: An ASCII host name, without brackets and without port.
    ///   - port: 1–65535, to be put into each address.
    /// - Throws: A ``ResolutionError``.
    func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress]
}

/// The system's resolver: `getaddrinfo`.
///
/// The file nsswitch.conf selects the sources of names: the hosts file, DNS, multicast DNS, systemd-resolved, or a
/// directory such as LDAP. A resolver library such as c-ares knows only the first two, and would resolve names
/// differently from other programs of the machine.
///
/// Two kinds of hosts are resolved without the system:
/// - `localhost` and names below it resolve to `::1` and `127.0.0.1` (RFC 6761 §6.3).
/// - Address literals, with or without a zone, are parsed.
///
/// `getaddrinfo` blocks a thread, for ten seconds or more if the name server is silent. Therefore these rules apply to
/// all look-ups of a process:
/// - Concurrent calls for the same name, in any letter case and with any port, share one look-up.
/// - A cancelled call returns immediately. A look-up that has not started is removed if no other call waits for it.
/// - Up to 512 look-ups run at the same time, fewer if the process may open fewer than 1,024 descriptors. No more than
///   64 of them are younger than 20 ms, so that the name server is not flooded.
/// - One domain (the last two labels of a name) uses at most half of the threads, or two thirds after calls were
///   cancelled. Thus a name resolves without delay even while the look-ups of 200 names of another domain hang.
/// - Names in `/etc/hosts` do not wait for names that need a name server: eight threads are reserved for them.
public struct SystemResolver: Resolver {
    /// Creates the system's resolver.
    public init() {}

    /// Returns the addresses, in the system's order of preference.
    public func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
        guard let port = UInt16(exactly: port) else {
            throw ResolutionError(host: host, code: EAI_SERVICE, message: "\(port) is not a port number")
        }
        if let answer = SystemResolver.immediateAnswer(for: host) { return try answer.get().map { $0.withPort(port) } }
        guard case .success(let loop) = EventLoop.shared else {
            throw ResolutionError(host: host, message: "the event loop could not be started")
        }
        return try await InFlightLookups.system.addresses(of: host, port: port, loop: loop)
    }

    /// The maximum length of a name: 253 bytes by RFC 1035 §2.3.4, a dot at the end, and one spare byte.
    static let nameLimit = 255

    /// The result for a host that can be resolved without waiting: an invalid one, `localhost`, or an address literal.
    static func immediateAnswer(for host: String) -> InFlightLookups.Answer? {
        guard (1...nameLimit).contains(host.utf8.count), !host.utf8.contains(0) else {
            return .failure(ResolutionError(host: host, code: EAI_NONAME, message: "not a host name"))
        }
        if isLocalhost(host) {
            return .success(["::1", "127.0.0.1"].compactMap { SocketAddress(literal: $0, port: 0) })
        }
        // Does not block: with this flag `getaddrinfo` only parses.
        let literal = lookUp(host, flags: AI_NUMERICHOST)
        guard case .success = literal else { return nil }
        return literal
    }

    /// Whether a name is `localhost` or below it (RFC 6761 §6.3).
    static func isLocalhost(_ host: String) -> Bool {
        let labels = host.lowercased().split(separator: ".", omittingEmptySubsequences: false)
        let named = labels.last == "" ? labels.dropLast() : labels[...]
        return named.last == "localhost" && !named.contains("")
    }

    /// Returns the addresses of a host, with port 0. Blocks the thread unless the flags contain `AI_NUMERICHOST`.
    static func lookUp(_ host: String, flags: Int32 = 0) -> InFlightLookups.Answer {
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = flags
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else {
            let message = code == EAI_SYSTEM ? SystemError.text(of: errno) : unsafe String(cString: gai_strerror(code))
            return .failure(ResolutionError(host: host, code: code, message: message))
        }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var entry = unsafe list
        while let current = unsafe entry {
            if let address = unsafe current.pointee.ai_addr {
                let bytes = unsafe [UInt8](
                    UnsafeRawBufferPointer(start: address, count: Int(current.pointee.ai_addrlen)))
                if let address = SocketAddress(kernelForm: bytes), !addresses.contains(address) {
                    addresses.append(address)
                }
            }
            unsafe entry = current.pointee.ai_next
        }
        guard !addresses.isEmpty else {
            return .failure(ResolutionError(host: host, message: "the name has no addresses"))
        }
        return .success(addresses)
    }
}

/// The names in the system's hosts file (hosts(5)). They affect the scheduling of a look-up, never its result:
/// addresses come from `getaddrinfo`, which also follows nsswitch.conf. A wrong or missing file only causes delays.
final class HostsFile: Sendable {
    static let system = HostsFile(path: "/etc/hosts")
    /// The maximum size of a file that is read. Names in larger files (lists of blocked hosts) get no precedence.
    static let byteLimit = 1 << 20

    private let path: String
    /// The names of the version that was read last.
    private let state = Mutex<(version: SystemFile.Version?, names: Set<String>)>((nil, []))

    init(path: String) { self.path = path }

    /// Whether the file contains a name, given in lowercase. The file is read again after it has changed.
    func contains(_ name: String) -> Bool {
        let version = SystemFile.Version(of: path)
        let known = state.withLock { $0.version == version ? $0.names : nil }
        if let known { return known.contains(name) }
        // Read outside of the lock, so that other callers do not wait. O_NONBLOCK: the path may become a pipe.
        let bytes = version.flatMap { _ in
            try? SystemFile.contents(of: path, limit: HostsFile.byteLimit, flags: O_NONBLOCK | O_NOCTTY)
        }
        let names = HostsFile.names(in: bytes ?? [])
        state.withLock { $0 = (version, names) }
        return names.contains(name)
    }

    /// The names in the text of a hosts file, in lowercase. Lines that do not begin with an address are ignored.
    static func names(in bytes: [UInt8]) -> Set<String> {
        let digits = "0123456789abcdefABCDEF.:"
        var names: Set<String> = []
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let content = line.prefix { $0 != UInt8(ascii: "#") }
            // The characters of isspace.
            let words = content.split { $0 == 0x20 || (0x09...0x0D).contains($0) }
            guard let address = words.first, address.allSatisfy({ digits.utf8.contains($0) }) else { continue }
            for word in words.dropFirst() where word.count <= SystemResolver.nameLimit {
                names.insert(String(decoding: word, as: UTF8.self).lowercased())
            }
        }
        return names
    }
}
