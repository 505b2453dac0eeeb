import CLinux
import Glibc

/// One address being connected to.
///
/// A struct of two steps, so that the race can start an attempt without waiting for it.
struct ConnectAttempt: Sendable {
    /// The address.
    let address: SocketAddress
    /// The socket, which connects as soon as it is made.
    let socket: Socket

    /// Opens a socket and starts connecting it.
    init(
        to address: SocketAddress, options: SocketOptions, loop: EventLoop
    ) throws(ConnectFailure) {
        do throws(SystemError) {
            let descriptor = try Descriptor(address.family)
            try options.apply(to: descriptor, family: address.family)
            try descriptor.connect(to: address)
            socket = try descriptor.register(with: loop)
        } catch {
            throw ConnectFailure(address: address.description, error: error)
        }
        self.address = address
    }

    /// Waits until the connection stands or is refused.
    ///
    /// - Throws: `.timedOut`, after which it may be waited for again; `.interrupted`, `.closed`; `.connect`.
    func finish(until deadline: MonotonicTime) async throws(TransportError) {
        try await socket.wait(for: .write, until: deadline)
        let result = socket.withDescriptor { descriptor -> Int32 in
            var code: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            let succeeded = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0
            return succeeded ? code : errno
        }
        guard let code = result else { throw .closed }
        guard code == 0 else {
            throw .connect([
                ConnectFailure(
                    address: address.description, error: SystemError(operation: "connect", code: code))
            ])
        }
        return
    }
}
