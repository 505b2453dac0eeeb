import Synchronization

/// A receipt that is filled while a stream runs.
final class ReceiptBox: Sendable {
    private let state = Mutex(HostileReceipt())

    func update(_ change: (inout sending HostileReceipt) -> Void) {
        state.withLock { change(&$0) }
    }

    var receipt: HostileReceipt { state.withLock { $0 } }
}
