import MartletTransport
import Synchronization

/// A monitor that follows pressure files while it has subscribers. Without subscribers it has no open file, no timer
/// and no thread. The event loop waits for notifications.
final class MemoryPressureMonitor: TimerTarget {
    private struct State {
        var run = WatchRun<MemoryPressureMachine>()
        var files: [PressureFile] = []
        var triggers: [PressureTrigger] = []
    }

    /// The lock on the state, used by subscribers and the loop's thread.
    private let state = Mutex(State())
    /// The latest level; `nil` without subscribers.
    private let newest = CurrentValue<MemoryPressure?>(nil)
    private let loop: EventLoop
    private let interval: Duration
    private let trimmer: MemoryTrimmer
    private let findFiles: @Sendable () -> [PressureFile]

    /// The monitor of the machine and of the process's control group, shared by the whole process.
    static let shared = MemoryPressureMonitor(loop: .sharedOrStalled) { PressureFile.ofSystem }

    /// Creates a monitor. At each start it calls `files` to find the pressure files.
    /// - Parameters:
    ///   - interval: The polling interval if the kernel sends no notifications, and after one.
    ///   - trimmer: Called when the level is above normal.
    init(
        loop: EventLoop, interval: Duration = MemoryPressureMachine.interval, trimmer: MemoryTrimmer = .shared,
        files: @escaping @Sendable () -> [PressureFile]
    ) { (self.loop, self.interval, self.trimmer, findFiles) = (loop, interval, trimmer, files) }

    /// Whether there is a readable file. Reads the files.
    var isSupported: Bool { findFiles().contains { $0.read() != nil } }

    /// Subscribes to the level, which is known when the function returns. The first subscription starts the monitor.
    func subscription() -> WatchSubscription<MemoryPressure> {
        subscribe()
        return WatchSubscription(to: newest) { [self] in unsubscribe() }
    }

    /// The latest level; normal without subscribers.
    var level: MemoryPressure { newest.value ?? .normal }

    /// Whether the kernel sends notifications; `false` without subscribers.
    var hasTriggers: Bool { state.withLock { !$0.triggers.isEmpty } }

    private func subscribe() {
        guard let run = state.withLock({ $0.run.add() }) else { return }
        let files = findFiles()
        let triggers = files.flatMap { file in
            PressureTrigger.Threshold.all.compactMap { threshold in
                PressureTrigger(file, threshold, loop: loop) { [self] level in
                    change(run) { $0.triggerFired(level: level, now: MonotonicTime.now()) }
                }
            }
        }
        // All triggers are necessary: without a notification for each level of each file, the files have to be polled.
        let hasTriggers = triggers.count == files.count * PressureTrigger.Threshold.all.count
        // The run cannot have ended, because this subscriber has not left.
        state.withLock { state in
            state.files = files
            state.triggers = triggers
            state.run.machine = MemoryPressureMachine(hasTriggers: hasTriggers, interval: interval)
        }
        for trigger in triggers { trigger.watch() }
        sample(run)
    }

    private func unsubscribe() {
        let triggers = state.withLock { state -> [PressureTrigger]? in
            guard state.run.remove() else { return nil }
            defer { state.triggers = [] }
            return state.triggers
        }
        guard let triggers else { return }
        for trigger in triggers { trigger.close() }
        publish()
    }

    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        sample(token, isTimer: true)
        return nil
    }

    /// Reads the files. A file that was removed, or is no longer a pressure file, counts as no pressure.
    private func sample(_ run: UInt64, isTimer: Bool = false) {
        let files = state.withLock { $0.run.isCurrent(run) ? $0.files : [] }
        let stall = files.reduce(MemoryStall()) { $0.joined($1.read() ?? MemoryStall()) }
        change(run, isTimer: isTimer) { $0.sampled(stall, now: MonotonicTime.now()) }
    }

    private func change(_ run: UInt64, isTimer: Bool = false, _ event: (inout MemoryPressureMachine) -> Void) {
        let timer = state.withLock { state -> MonotonicTime?? in
            guard state.run.change(run, event) != nil else { return nil }
            return .some(isTimer ? state.run.rearm() : state.run.arm())
        }
        guard let timer else { return }
        publish()
        if let timer { loop.schedule(self, token: run, at: timer) }
    }

    /// Publishes the machine's level: after several concurrent changes, the last one publishes the combined result.
    private func publish() {
        newest.update { state.withLock { $0.run.machine?.level } }
        // After the subscribers have released what they can.
        if level > .normal { trimmer.schedule() }
    }
}
