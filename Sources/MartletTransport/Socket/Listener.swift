import CLinux
import Glibc

/// A listening socket: the test origin's front door.
package final class Listener: Sendable {
    private let socket: Socket
    /// The address it is bound to, with the port that the kernel chose.
    package let address: SocketAddress

    /// Binds and listens.
    /// - Parameters:
    ///   - address: With port 0, the kernel chooses a free one. The file of a unix domain socket must not exist.
    ///   - backlog: How many connections may wait to be accepted.
    package init(address: SocketAddress, backlog: Int32 = 1024, loop: EventLoop) throws(SystemError) {
        let descriptor = try Descriptor(address.family)
        if address.family != .unix { try descriptor.setOption(SOL_SOCKET, SO_REUSEADDR, 1) }
        try descriptor.bind(to: address)
        guard listen(descriptor.number, backlog) == 0 else {
            throw SystemError(operation: "listen", code: errno)
        }
        socket = try descriptor.register(with: loop)
        self.address = socket.localAddress ?? address
    }

    /// Waits for a connection and takes it.
    /// - Throws: `.closed` after ``close()``; `.system` when the system refuses, as with no descriptor left.
    package func accept(loop: EventLoop) async throws(TransportError) -> Socket {
        while true {
            // Cleared before the call, so that an edge that comes right after it is kept.
            _ = socket.readiness.beginRead()
            let result = socket.withDescriptor { descriptor in
                Socket.retrying {
                    Int(martlet_accept4(descriptor, Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)))
                }
            }
            guard let (descriptor, code) = result else { throw .closed }
            if descriptor >= 0 {
                do throws(SystemError) {
                    let accepted = try Socket(adopting: Int32(descriptor), loop: loop)
                    if address.family != .unix { accepted.sendSmallWritesAtOnce() }
                    return accepted
                } catch {
                    throw .system(error)
                }
            }
            if code == ECONNABORTED { continue }
            guard code == EAGAIN || code == EWOULDBLOCK else {
                throw .system(SystemError(operation: "accept", code: code))
            }
            socket.readiness.readDrained()
            try await socket.wait(for: .read, until: .distantFuture)
        }
    }

    /// Stops listening; a waiting ``accept(loop:)`` throws.
    package func close() { socket.close() }
}
