import Martlet
import Synchronization

/// The report of a transfer as it is written, while the transfer runs.
final class TransferLedger: Sendable {
    /// Guards the report: the transfer's own task, and closures it hands out.
    private let state: Mutex<TransferReport>
    private let again = Atomic(false)

    init(_ report: TransferReport) {
        state = Mutex(report)
    }

    /// The report as it stands.
    var report: TransferReport { state.withLock { $0 } }

    /// Whether it is of a further try.
    var isAgain: Bool { again.load(ordering: .relaxed) }

    /// Begins the report of a further try.
    func restart(_ plan: TransferPlan) {
        again.store(true, ordering: .relaxed)
        update { report in
            let file = report.file
            report = TransferReport(plan)
            report.file = file
        }
    }

    /// Changes it.
    func update(_ change: (inout TransferReport) -> Void) {
        state.withLock { change(&$0) }
    }

    /// Notes the requests of a call as they go by.
    var watcher: CallWatcher {
        CallWatcher(
            sent: { head in self.update { $0.sentHeads.append(head) } },
            followed: { hop, exchange in
                self.update { report in
                    report.steps.append(
                        TransferStep(sentHeads: report.sentHeads, hop: hop, exchange: exchange))
                    report.sentHeads = []
                }
            })
    }
}
