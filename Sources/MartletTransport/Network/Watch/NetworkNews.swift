import CLinux
import Glibc

/// The socket on which the kernel tells of changes, watched by the event loop.
final class NetworkNews: IdleWatcher {
    private let socket: Socket
    private let matters: @Sendable ([UInt8]) -> Bool
    private let told: @Sendable () -> Void

    /// Takes over a socket.
    /// - Parameters:
    ///   - matters: Whether a datagram is a reason to tell.
    ///   - told: Called on the loop's thread, from ``watch()`` on, once for all that has come.
    init(
        adopting descriptor: Int32, loop: EventLoop, matters: @escaping @Sendable ([UInt8]) -> Bool,
        told: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        socket = try Socket(adopting: descriptor, loop: loop)
        self.matters = matters
        self.told = told
    }

    deinit {
        close()
    }

    /// Has news told from now on.
    func watch() {
        socket.readiness.watchWhileIdle(self)
        // The socket keeps its watcher until it is closed, which may have been just before.
        if socket.isClosed { _ = socket.readiness.endIdleWatch() }
    }

    /// Ends it; the first call counts.
    func close() {
        socket.close()
    }

    func idleStreamStirred() {
        if drain() { told() }
    }

    /// Takes all that has come: the next edge comes when there is more.
    /// - Returns: Whether there was anything that matters.
    private func drain() -> Bool {
        var isNews = false
        while true {
            switch socket.withDescriptor({ NetlinkSocket.receive(on: $0) }) {
            case .datagram(let bytes):
                // One reason is enough; the rest is only taken.
                if !isNews, matters(bytes) { isNews = true }
            case .lost: isNews = true
            case .nothing, nil: return isNews
            case .failed: return true
            }
        }
    }
}
