import MartletTransport

/// A loopback address on which connecting neither succeeds nor fails: a listener that accepts nothing and whose queue
/// is full, so that the kernel drops every further SYN.
final class BlackHole: Sendable {
    private let listener: Listener
    private let fillers: [any ByteStream]
    /// The address on which connecting hangs.
    let address: SocketAddress

    /// The port; 0 for an address without one.
    var port: Int { address.port ?? 0 }

    /// Opens a listener and fills its queue.
    init() async throws {
        let loop = EventLoop.sharedOrStalled
        guard let any = SocketAddress(literal: "127.0.0.1", port: 0) else { throw NoAddress() }
        listener = try Listener(address: any, backlog: 0, loop: loop)
        address = listener.address
        let dialer = Dialer(settings: DialSettings(), loop: loop)
        let destination = Destination(isSecure: false, host: "127.0.0.1", port: listener.address.port ?? 0)
        var fillers: [any ByteStream] = []
        // The queue holds one connection more than its backlog of zero, so the first connection is awaited. A later one
        // that hangs shows that the queue is full.
        for index in 0..<8 {
            do throws(DialError) {
                let deadline = MonotonicTime.now().advanced(
                    by: index == 0 ? TestTimeouts.long : .milliseconds(200))
                fillers.append(try await dialer.dial(destination, until: deadline).stream)
            } catch {
                break
            }
        }
        self.fillers = fillers
    }

    /// The number of connections in the queue.
    var fillerCount: Int { fillers.count }

    /// The impossible case of a loopback listener without an address.
    struct NoAddress: Error {}

    /// Closes the listener and its queued connections.
    func close() {
        for filler in fillers { filler.close() }
        listener.close()
    }
}
