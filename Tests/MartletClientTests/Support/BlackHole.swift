import MartletTransport

/// An address of loopback where connecting neither succeeds nor fails: a listener that accepts nothing and whose queue is
/// full, so that the kernel drops every further SYN.
final class BlackHole: Sendable {
    private let listener: Listener
    private let fillers: [any ByteStream]
    /// Where connecting waits.
    let address: SocketAddress

    /// Its port.
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
        // The queue holds one more than its length says, which is nothing: the first connection fills it for certain, and
        // is waited for. That another one has to wait shows that it is full.
        for index in 0..<8 {
            do throws(DialError) {
                let deadline = MonotonicTime.now().advanced(
                    by: index == 0 ? Patience.long : .milliseconds(200))
                fillers.append(try await dialer.dial(destination, until: deadline).stream)
            } catch {
                break
            }
        }
        self.fillers = fillers
    }

    /// How many connections fill the queue.
    var fillerCount: Int { fillers.count }

    /// Loopback has no such address, which cannot be.
    struct NoAddress: Error {}

    /// Ends it.
    func close() {
        for filler in fillers { filler.close() }
        listener.close()
    }
}
