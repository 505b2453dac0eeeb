import MartletConnections
import MartletTransport
import Synchronization

/// Lets an exchange be paused by whoever takes it over, once somebody does.
final class FlightGate: TransferGate {
    /// Set when the exchange is taken over, read by its tasks.
    private let holder = Mutex<TransferControl?>(nil)

    /// Hands the exchange over to a call.
    func pass(to control: TransferControl) {
        holder.withLock { $0 = control }
    }

    var isPaused: Bool { holder.withLock { $0 }?.isPaused ?? false }

    func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async {
        await holder.withLock { $0 }?.waitWhilePaused(until: deadline, on: loop)
    }
}
