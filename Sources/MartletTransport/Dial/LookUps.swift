import Synchronization

/// The look-ups of names that are under way: one for each name, however many wait for it.
///
/// A look-up blocks its thread until it ends, for half a minute where the name server is dead, and cannot be stopped. So
/// those who want the same name share one, one that nobody wants any more is not begun, and names have threads of their
/// own: a dead name takes one thread, and neither the names nor the files of others wait for it.
package final class LookUps: Sendable {
    package typealias Answer = Result<[SocketAddress], ResolutionError>

    private struct State {
        var lastNumber: UInt64 = 0
        /// Who waits for which name, by a number.
        var waiting: [Endpoint: [UInt64: OneShot<Answer>]] = [:]
    }

    /// Those of the system's resolver.
    package static let system = LookUps(
        workers: BlockingWorkers(threadLimit: 8), lookUp: { SystemResolver.lookUp($0, port: $1) })

    /// Guards who waits: the tasks that do, and the threads that bring answers.
    private let state = Mutex(State())
    private let workers: BlockingWorkers
    private let lookUp: @Sendable (String, Int) -> Answer

    /// Look-ups by a call that blocks.
    package init(workers: BlockingWorkers, lookUp: @escaping @Sendable (String, Int) -> Answer) {
        self.workers = workers
        self.lookUp = lookUp
    }

    /// The addresses of a name; returns at once when the task is cancelled.
    package func addresses(
        of host: String, port: Int, loop: EventLoop
    ) async throws(ResolutionError) -> [SocketAddress] {
        let name = Endpoint(host: host, port: port)
        let answer = OneShot<Answer>()
        let (number, isFirst) = state.withLock { state in
            state.lastNumber += 1
            let isFirst = state.waiting[name] == nil
            state.waiting[name, default: [:]][state.lastNumber] = answer
            return (state.lastNumber, isFirst)
        }
        if isFirst { workers.submit { self.run(name) } }
        let outcome = await withTaskCancellationHandler {
            await answer.wait(until: .distantFuture, on: loop)
        } onCancel: {
            // The entry stays though it may be empty: it says that the look-up is queued or running.
            state.withLock { state in _ = state.waiting[name]?.removeValue(forKey: number) }
            answer.interrupt()
        }
        switch outcome {
        case .value(let result): return try result.get()
        case .timedOut, .interrupted: throw ResolutionError(host: host, message: "the look-up was cancelled")
        }
    }

    /// How many tasks wait, for whichever name.
    package var waitingCount: Int {
        state.withLock { state in state.waiting.values.reduce(0) { $0 + $1.count } }
    }

    /// How many threads look names up, or wait to.
    package var threadCount: Int { workers.threadCount }

    private func run(_ name: Endpoint) {
        let isWanted = state.withLock { state in
            if state.waiting[name]?.isEmpty == false { return true }
            state.waiting[name] = nil
            return false
        }
        guard isWanted else { return }
        let result = lookUp(name.host, name.port)
        let answers = state.withLock { $0.waiting.removeValue(forKey: name) } ?? [:]
        for answer in answers.values { answer.fulfil(result) }
    }
}
