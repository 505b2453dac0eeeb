package import MartletTransport
import Synchronization

/// Follows pressure files as long as somebody wants to know, and not a moment longer: without subscribers it has no open
/// file, no timer and no thread. What waits is the event loop.
package final class MemoryPressureMonitor: TimerTarget {
    private struct State {
        var subscribers = SubscriberCount()
        var files: [PressureFile] = []
        var triggers: [PressureTrigger] = []
        var machine: MemoryPressureMachine?
        /// Whether a timer will come in any case.
        var isArmed = false
    }

    /// Guards the above: subscribers, and the loop's thread.
    private let state = Mutex(State())
    /// The newest level; `nil` where nobody is subscribed.
    private let newest = NewestValue<MemoryPressure?>(nil)
    private let loop: EventLoop
    private let interval: Duration
    private let findFiles: @Sendable () -> [PressureFile]

    /// The monitor that the whole process shares, of the machine's memory and its control group's.
    package static let shared = MemoryPressureMonitor(loop: .sharedOrStalled) { PressureFile.ofSystem }

    /// A monitor of files, which are found anew each time it begins.
    /// - Parameter interval: How often files are read where the kernel does not call, and while it has.
    package init(
        loop: EventLoop, interval: Duration = MemoryPressureMachine.interval,
        files: @escaping @Sendable () -> [PressureFile]
    ) {
        self.loop = loop
        self.interval = interval
        findFiles = files
    }

    /// Whether there is a file that can be read. It reads them.
    package var isSupported: Bool { findFiles().contains { $0.read() != nil } }

    /// Begins to follow, where nobody else does; the present level is known when it returns.
    package func subscription() -> WatchSubscription<MemoryPressure> {
        subscribe()
        return WatchSubscription(to: newest) { [self] in unsubscribe() }
    }

    /// The newest level; normal where nobody is subscribed.
    package var level: MemoryPressure { newest.value ?? .normal }

    /// Whether the kernel calls, as long as somebody is subscribed.
    package var isCalled: Bool { state.withLock { !$0.triggers.isEmpty } }

    // MARK: Beginning and ending

    private func subscribe() {
        guard let run = state.withLock({ $0.subscribers.add() }) else { return }
        let files = findFiles()
        let triggers = files.flatMap { file in
            PressureTrigger.Wish.all.compactMap { wish in
                PressureTrigger(file, wish, loop: loop) { [self] level in called(for: level, run) }
            }
        }
        // Half of what was asked for is not enough: what the kernel does not call for has to be looked at.
        let isCalled = !files.isEmpty && triggers.count == files.count * PressureTrigger.Wish.all.count
        // It is this subscriber that keeps the run from ending meanwhile.
        state.withLock { state in
            state.files = files
            state.triggers = triggers
            state.machine = MemoryPressureMachine(isCalled: isCalled, interval: interval)
        }
        for trigger in triggers { trigger.watch() }
        look(run, isTimer: false)
    }

    private func unsubscribe() {
        let triggers = state.withLock { state -> [PressureTrigger]? in
            guard state.subscribers.remove() else { return nil }
            state.machine = nil
            state.isArmed = false
            defer { state.triggers = [] }
            return state.triggers
        }
        guard let triggers else { return }
        for trigger in triggers { trigger.close() }
        publish()
    }

    // MARK: News

    private func called(for level: MemoryPressure, _ run: UInt64) {
        change(run, isTimer: false) { $0.called(for: level, now: MonotonicTime.now()) }
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        look(token, isTimer: true)
        return nil
    }

    /// Reads the files. One that is gone, or has become another, has nothing to complain of.
    private func look(_ run: UInt64, isTimer: Bool) {
        let files = state.withLock { $0.subscribers.run == run ? $0.files : [] }
        let stall = files.reduce(MemoryStall()) { $0.joined($1.read() ?? MemoryStall()) }
        change(run, isTimer: isTimer) { $0.looked(stall, now: MonotonicTime.now()) }
    }

    private func change(_ run: UInt64, isTimer: Bool, _ event: (inout MemoryPressureMachine) -> Void) {
        let (isCurrent, next) = state.withLock { state -> (Bool, MonotonicTime?) in
            guard state.subscribers.run == run, var machine = state.machine else { return (false, nil) }
            event(&machine)
            state.machine = machine
            if isTimer { state.isArmed = false }
            guard !state.isArmed, !state.files.isEmpty, let next = machine.nextLook else {
                return (true, nil)
            }
            state.isArmed = true
            return (true, next)
        }
        guard isCurrent else { return }
        publish()
        if let next { loop.schedule(self, token: run, at: next) }
    }

    /// Tells what the machine says now: of several threads with news, the last one tells what all of them made of it.
    private func publish() {
        newest.update { state.withLock { $0.machine?.level } }
    }
}
