import Martlet
import MartletTesting
import MartletTransport
import Synchronization

/// Resolves names to loopback: immediately for the first `freeCount` lookups, and for later ones after ``open()``.
final class GatedResolver: Resolver {
    private let state: Mutex<(free: Int, isOpen: Bool, waiters: [OneShot<Void>])>
    private let asked = Mutex(0)

    /// Creates a resolver whose first `freeCount` lookups do not wait.
    init(freeCount: Int = 0) {
        state = Mutex((freeCount, false, []))
    }

    /// The number of started lookups.
    var askedCount: Int { asked.withLock { $0 } }

    /// Completes all current and later lookups.
    func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            return state.waiters
        }
        for waiter in waiters { waiter.fulfill(()) }
    }

    func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
        asked.withLock { $0 += 1 }
        let event = OneShot<Void>()
        let isFree = state.withLock { state in
            if state.isOpen { return true }
            if state.free > 0 {
                state.free -= 1
                return true
            }
            state.waiters.append(event)
            return false
        }
        if !isFree {
            _ = await withTaskCancellationHandler {
                await event.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
            } onCancel: {
                event.interrupt()
            }
        }
        guard let address = SocketAddress(literal: "127.0.0.1", port: port) else {
            throw ResolutionError(host: host, message: "no such port")
        }
        return [address]
    }
}
