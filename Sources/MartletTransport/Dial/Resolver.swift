import CLinux
import Glibc

/// Turns a host name into addresses.
public protocol Resolver: Sendable {
    /// The addresses of a host, in the order of preference; the connect race interleaves their families (RFC 8305 §4).
    ///
    /// Called when a connection is opened, never for address literals. When the task is cancelled it should return
    /// soon; its result is then ignored.
    ///
    /// - Parameters:
    ///   - host: An ASCII host name, without brackets and without port.
    ///   - port: 1–65535, to be put into each address.
    /// - Throws: A ``ResolutionError``.
    func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress]
}

/// The system's resolver: `getaddrinfo`, on a thread of its own kind, since it blocks.
///
/// Names below `localhost` are this machine, and nobody else is asked about them (RFC 6761 §6.3): `::1` and `127.0.0.1`.
/// What `localhost` itself is, the system says.
///
/// Calls that want the same name at the same time share one look-up. A cancelled one returns at once; the blocked call
/// ends when it ends.
public struct SystemResolver: Resolver {
    /// The system's resolver.
    public init() {}

    /// The addresses, in the order the system prefers them.
    public func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
        if SystemResolver.isBelowLocalhost(host) {
            return ["::1", "127.0.0.1"].compactMap { SocketAddress(literal: $0, port: port) }
        }
        guard case .success(let loop) = EventLoop.shared else {
            throw ResolutionError(host: host, message: "the event loop could not be started")
        }
        return try await LookUps.system.addresses(of: host, port: port, loop: loop)
    }

    static func isBelowLocalhost(_ host: String) -> Bool {
        let labels = host.lowercased().split(separator: ".", omittingEmptySubsequences: false)
        let named = labels.last == "" ? labels.dropLast() : labels[...]
        return named.count > 1 && named.last == "localhost" && !named.contains("")
    }

    static func lookUp(_ host: String, port: Int) -> Result<[SocketAddress], ResolutionError> {
        var hints = unsafe addrinfo()
        unsafe hints.ai_family = AF_UNSPEC
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else {
            let message =
                code == EAI_SYSTEM ? SystemError.text(of: errno) : unsafe String(cString: gai_strerror(code))
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
