import Martlet
import MartletTesting
import MartletTransport
import Synchronization

/// Resolves to loopback: at once the first so many times, and afterwards when it is let to.
final class GatedResolver: Resolver {
    private let state: Mutex<(free: Int, isOpen: Bool, waiters: [OneShot<Void>])>
    private let asked = Mutex(0)

    /// A resolver that answers so many look-ups without being let to.
    init(freeCount: Int = 0) {
        state = Mutex((freeCount, false, []))
    }

    /// How many look-ups were begun.
    var askedCount: Int { asked.withLock { $0 } }

    /// Lets all look-ups end, now and later.
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
