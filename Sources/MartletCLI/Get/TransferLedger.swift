import Martlet
import Synchronization

/// The report of a transfer as it is written, while the transfer runs.
final class TransferLedger: Sendable {
    /// Guards the report: the transfer's own task, and closures it hands out.
    private let state: Mutex<TransferReport>
    /// Guards the watch over the speed, if there is one: the call, and the task that watches.
    private let speed: Mutex<SpeedWatch?>

    init(_ report: TransferReport, speed: SpeedWatch? = nil) {
        state = Mutex(report)
        self.speed = Mutex(speed)
    }

    /// The report as it stands.
    var report: TransferReport { state.withLock { $0 } }

    /// Begins the report of a further try.
    func restart(_ plan: TransferPlan) {
        speed.withLock { $0?.rest() }
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

    /// Notes how many bytes have moved.
    /// - Returns: Whether the transfer is too slow.
    func isTooSlow(_ bytes: UInt64, at now: ContinuousClock.Instant) -> Bool {
        speed.withLock { $0?.isTooSlow(bytes, at: now) ?? false }
    }

    /// Notes the requests of a call as they go by.
    var watcher: CallWatcher {
        CallWatcher(
            sent: { head in self.update { $0.passedHeads.append(.sent(head)) } },
            connected: { heads in
                self.speed.withLock { $0?.begin(at: .now) }
                self.update { $0.noteTunnel(heads) }
            },
            repeated: { heads in self.update { $0.passedHeads += heads.map { .received($0) } } },
            followed: { hop, exchange in
                self.speed.withLock { $0?.rest() }
                self.update { report in
                    report.steps.append(
                        TransferStep(passedHeads: report.passedHeads, hop: hop, exchange: exchange))
                    report.passedHeads = []
                }
            })
    }
}
