import Synchronization

/// The report of a transfer as it is written, while the transfer runs.
final class TransferLedger: Sendable {
    /// Guards the report: the transfer's own task, and closures it hands out.
    private let state: Mutex<TransferReport>

    init(_ report: TransferReport) {
        state = Mutex(report)
    }

    /// The report as it stands.
    var report: TransferReport { state.withLock { $0 } }

    /// Changes it.
    func update(_ change: (inout TransferReport) -> Void) {
        state.withLock { change(&$0) }
    }
}
