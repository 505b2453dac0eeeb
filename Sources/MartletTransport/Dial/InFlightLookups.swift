import Glibc
import Synchronization

/// The look-ups of names that are queued or running in this process: one for each name, for any number of callers.
/// ``LookUpMachine`` decides when each starts. A queued look-up that no caller waits for is removed.
package final class InFlightLookups: TimerTarget {
    /// The result of a look-up: addresses with port 0.
    package typealias Answer = Result<[SocketAddress], ResolutionError>

    private struct State {
        var machine: LookUpMachine
        var lastNumber: UInt64 = 0
        /// The callers that wait for a name, by number. A name without callers has no entry.
        var waiting: [String: [UInt64: OneShot<Answer>]] = [:]
        var isTimerArmed = false
    }

    /// The look-ups of the system's resolver.
    package static let system = InFlightLookups(
        limits: .ofProcess, isLocal: { HostsFile.system.contains($0) }, lookUp: { SystemResolver.lookUp($0) })

    /// The stack size of a thread. `getaddrinfo` used 19 KiB at most (measured with glibc 2.36, files and dns); the
    /// rest is for other modules of nsswitch.conf.
    private static let stackByteCount = 512 << 10
    /// Guards the machine and the callers: used by the tasks of callers, look-up threads and the timer.
    private let state: Mutex<State>
    private let workers: BlockingThreadPool
    private let isLocal: @Sendable (String) -> Bool
    private let lookUp: @Sendable (String) -> Answer

    /// Creates look-ups that use a blocking call.
    /// - Parameters:
    ///   - isLocal: Whether a name, in lowercase, can be looked up without a name server.
    ///   - lookUp: Looks up a name in lowercase. Called on its own thread.
    package init(
        limits: LookUpMachine.Limits = LookUpMachine.Limits(),
        isLocal: @escaping @Sendable (String) -> Bool = { _ in false }, lookUp: @escaping @Sendable (String) -> Answer
    ) {
        state = Mutex(State(machine: LookUpMachine(limits: limits)))
        workers = BlockingThreadPool(threadLimit: limits.threadCount, stackByteCount: InFlightLookups.stackByteCount)
        (self.isLocal, self.lookUp) = (isLocal, lookUp)
    }

    /// Returns the addresses of a name. Throws immediately when the task is cancelled.
    package func addresses(of host: String, port: UInt16, loop: EventLoop) async throws(ResolutionError)
        -> [SocketAddress]
    {
        let name = host.lowercased()
        let isLocal = isLocal(name)
        let answer = OneShot<Answer>()
        let (number, effects) = state.withLock { state in
            state.lastNumber += 1
            let isFirst = state.waiting[name] == nil
            state.waiting[name, default: [:]][state.lastNumber] = answer
            let effects =
                isFirst ? state.machine.requested(name, isLocal: isLocal, now: .now()) : LookUpMachine.Effects()
            return (state.lastNumber, effects)
        }
        perform(effects)
        let outcome = await withTaskCancellationHandler {
            await answer.wait(until: .distantFuture, on: loop)
        } onCancel: {
            abandon(name, number: number)
            answer.interrupt()
        }
        switch outcome {
        case .value(.success(let addresses)): return addresses.map { $0.withPort(port) }
        case .value(.failure(var error)):
            error.host = host
            throw error
        case .timedOut, .interrupted: throw ResolutionError(host: host, message: "the look-up was cancelled")
        }
    }

    /// The number of callers that wait, for any name.
    package var waitingCount: Int { state.withLock { state in state.waiting.values.reduce(0) { $0 + $1.count } } }

    /// The number of threads, idle ones included.
    package var threadCount: Int { workers.threadCount }

    private func abandon(_ name: String, number: UInt64) {
        let effects = state.withLock { state in
            guard state.waiting[name]?.removeValue(forKey: number) != nil, state.waiting[name]?.isEmpty == true else {
                return LookUpMachine.Effects()
            }
            state.waiting[name] = nil
            return state.machine.abandoned(name, now: .now())
        }
        perform(effects)
    }

    private func run(_ name: String) {
        let result = lookUp(name)
        let (answers, effects) = state.withLock { state in
            let answers = state.waiting.removeValue(forKey: name) ?? [:]
            return (answers, state.machine.ended(name, now: .now()))
        }
        perform(effects)
        for answer in answers.values { answer.fulfill(result) }
    }

    private func perform(_ effects: LookUpMachine.Effects) {
        start(effects.starts)
        guard let wakeUp = effects.wakeUp else { return }
        // One timer is enough: `wakeUp` never moves to an earlier time.
        let mustArm = state.withLock { state in
            defer { state.isTimerArmed = true }
            return !state.isTimerArmed
        }
        if mustArm { EventLoop.sharedOrStalled.schedule(self, token: 0, at: wakeUp, isRetained: true) }
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let effects = state.withLock { state in
            let effects = state.machine.advance(now: now)
            state.isTimerArmed = effects.wakeUp != nil
            return effects
        }
        start(effects.starts)
        return effects.wakeUp
    }

    private func start(_ names: [String]) { for name in names { workers.submit { self.run(name) } } }
}

extension LookUpMachine.Limits {
    /// The limits for this process: at most half of its descriptors (at least 24), since each look-up opens a socket.
    static let ofProcess: LookUpMachine.Limits = {
        var limits = LookUpMachine.Limits()
        var descriptors = rlimit()
        if unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &descriptors) == 0 {
            limits.threadCount = min(limits.threadCount, max(24, Int(clamping: descriptors.rlim_cur / 2)))
        }
        return limits
    }()
}
