import MartletCore
import MartletFeatureSettings
import Synchronization

/// One run of a download: it performs the actions of its machine. Transfers and checkpoints are tasks of one group.
/// They send signals, and so does a clock.
final class DownloadRun: Sendable {
    /// A report to the run.
    enum Signal: Sendable {
        /// Effects of a worker's call to the machine.
        case effects([DownloadMachine.Effect])
        case ended(UInt64, DownloadMachine.TransferOutcome)
        case tick
        case checkpointed
        /// The written bytes can no longer be trusted, or cannot be recorded.
        case broken(HTTPError, keeps: Bool)
    }

    package enum Outcome: Sendable {
        /// All bytes are written.
        case complete
        case failed(HTTPError)
        /// The run's task, or one of its calls, was cancelled.
        case stopped
    }

    struct State {
        var machine: DownloadMachine
        var rate: ProgressRate
        var part: PartFile?
        var transfers: [UInt64: Transfer] = [:]
        /// The bytes of all bodies that are in the rate.
        var ratedByteCount: UInt64 = 0
        /// The maximum number of received bytes that was reported for a generation. Taking over a range may lose bytes.
        var shown: (generation: UInt32, byteCount: UInt64) = (0, 0)
        let began: MonotonicTime
        var metrics = DownloadMetrics()
        var lastPublished: MonotonicTime
        var keeps = true
        /// The number of bytes left at the end of the run, if it is not that of the last generation.
        var leftByteCount: UInt64?
        /// The last generation that needs an empty file; 0 for none.
        var restartedGeneration: UInt32 = 0
        /// The name that the file got as soon as its last bytes were written, and the result with the requested name.
        var published: (name: PublishedName, result: DownloadResult)?
        /// The effects that wait for ``DownloadRun/supervise(_:)``; `nil` while it runs.
        var heldEffects: [DownloadMachine.Effect]?

        /// The destination of bytes that arrive now.
        var destination: Destination {
            (machine.generation, restartedGeneration == machine.generation, machine.plan?.total)
        }
    }

    struct Transfer {
        let control: TransferControl
        /// The bytes of its body that the sink has handled. Those to skip or to compare count from the start.
        var handledByteCount: UInt64 = 0

        /// The received bytes of the body, up to 1 MiB, that the sink does not have yet.
        var waitingByteCount: UInt64 {
            let received = control.presentDownload.completedByteCount
            return received - min(received, handledByteCount)
        }
    }

    /// The destination of received bytes: the generation, whether it starts with an empty file, and the file's length.
    typealias Destination = (epoch: UInt32, isRestarted: Bool, total: UInt64?)

    let job: DownloadJob
    let session: HTTPSession
    let files: any FileSystem
    let url: HTTPURL
    let options: DownloadOptions
    let onPublication: DownloadJob.PublicationHandler?
    let signals = Mailbox<Signal>()
    /// The lock on the state, used by the tasks of transfers, and by their workers for each block.
    let state: Mutex<State>
    /// The lock that is held by the worker that opens the part file.
    let opening = Mutex(())

    init(_ job: DownloadJob, onPublication: DownloadJob.PublicationHandler?) {
        (self.job, self.onPublication) = (job, onPublication)
        (session, files, url, options) = (job.session, job.files, job.url, job.plan.options)
        let now = MonotonicTime.now()
        state = Mutex(
            State(
                machine: DownloadMachine(url: job.url, options: job.plan.options, now: now),
                rate: ProgressRate(from: now), began: now, lastPublished: now))
    }

    func failure(_ error: StorageError) -> HTTPError { HTTPError(storage: error, method: .get, url: url) }

    // MARK: Running

    /// Runs until the file is complete, the download fails, or the task is cancelled, which retains the received bytes.
    func run() async throws -> DownloadResult {
        defer {
            // Closed explicitly: workers may still retain files that they have written to.
            state.withLock { $0.part }?.close()
            publishProgress(isLast: true)
        }
        do {
            var result = try await run(from: try await job.openPart { part in self.resume(from: part) })
            result.metrics = state.withLock { state in
                state.metrics.duration = MonotonicTime.now().since(state.began)
                state.metrics.restartCount = Int(state.machine.generation) - 1
                state.metrics.receivedByteCounts = state.machine.receivedByteCounts
                return state.metrics
            }
            return result
        } catch let error as StorageError { throw failure(error) } catch var error as HTTPError {
            error.attempts = max(error.attempts, state.withLock { $0.metrics.retryCount } + 1)
            throw error
        }
    }

    /// Stores the opened part file, and reads its record. Blocks.
    /// - Returns: The record of its bytes, if they can be reused.
    private func resume(from part: PartFile) -> ResumeRecord? {
        state.withLock { $0.part = part }
        guard options.resumption != .restart, let record = part.record(), job.isValid(record) else { return nil }
        part.take(record)
        return record
    }

    private func run(from record: ResumeRecord?) async throws -> DownloadResult {
        var effects = state.withLock { $0.machine.start(record, now: MonotonicTime.now()) }
        while true {
            switch await rounds(effects) {
            // A file that has its name is complete, regardless of later reports.
            case .stopped where !isPublished:
                _ = state.withLock { $0.machine.stop() }
                _ = await keep()
                throw CancellationError()
            case .failed(let error) where !isPublished: throw error.keeping(await keep())
            case .complete, .stopped, .failed:
                do { return try await finish() } catch let mismatch as ChecksumMismatch {
                    job.status.become(.running)
                    if let part = state.withLock({ $0.part }) {
                        await BlockingThreadPool.shared.run { part.distrust() }
                    }
                    effects = state.withLock { $0.machine.mismatched(mismatch.error, now: MonotonicTime.now()) }
                    if case .fail(let error)? = effects.first {
                        state.withLock { $0.keeps = false }
                        throw error.keeping(await keep())
                    }
                } catch let unsynced as DownloadJob.UnsyncedName {
                    // The bytes have their final name, and nothing is left in the part file.
                    throw unsynced.error
                } catch var error as HTTPError {
                    // All bytes are written; the failure concerns the target or the disk.
                    guard let count = await keep() else { throw error.keeping(nil) }
                    error.resumableByteCount = count
                    throw error
                } catch {
                    _ = await keep()
                    throw error
                }
            }
        }
    }

    private var isPublished: Bool { state.withLock { $0.published != nil } }

    /// Performs effects, and those that follow, until the download is over. No transfer is active then.
    ///
    /// The run's own task makes the first request of a download. If the response is a small file, the
    /// download needs only this task and one job of a worker. Otherwise another task supervises the download.
    private func rounds(_ first: [DownloadMachine.Effect]) async -> Outcome {
        let clock = RunClock(self)
        defer { withExtendedLifetime(clock) {} }
        EventLoop.sharedOrStalled.schedule(clock, token: 0, at: .now().advanced(by: .milliseconds(50)))
        guard case .begin(let request)? = first.last, onPublication == nil, options.timeLimit == nil, job.slots == nil,
            state.withLock({ $0.machine.plan == nil && $0.machine.transfers.count == 1 })
        else { return await supervise(first) }
        for case .emit(let event) in first.dropLast() { job.report(event, total: nil) }
        let control = TransferControl(reportsProgress: false)
        state.withLock { ($0.transfers[request.id], $0.heldEffects) = (Transfer(control: control), []) }
        return await withTaskGroup(of: Outcome.self) { group in
            var isSupervised = false
            let end = await transfer(request, control, mayWait: true) {
                isSupervised = true
                let effects = takeHeldEffects()
                group.addTask { await self.supervise(effects) }
            }
            if isSupervised {
                report(request.id, end)
                return await group.next() ?? .stopped
            }
            let effects = takeHeldEffects()
            guard let end, !Task.isCancelled else { return .stopped }
            return await supervise(effects + take(.ended(request.id, end)))
        }
    }

    private func takeHeldEffects() -> [DownloadMachine.Effect] { state.withLock { $0.heldEffects.take() ?? [] } }

    /// Performs effects, and those that follow, in a group of tasks.
    private func supervise(_ first: [DownloadMachine.Effect]) async -> Outcome {
        await withTaskGroup(of: Void.self, returning: Outcome.self) { group in
            if let outcome = perform(first, in: &group) { return outcome }
            var outcome = Outcome.stopped
            while let signal = await nextSignal() {
                if let end = perform(take(signal), in: &group) {
                    outcome = end
                    break
                }
                publishProgress()
            }
            group.cancelAll()
            // In addition to cancelling the group, this ends the calls immediately.
            for transfer in state.withLock({ Array($0.transfers.values) }) { transfer.control.cancel() }
            await group.waitForAll()
            return outcome
        }
    }

    /// Returns the next signal; `nil` when the task is cancelled, after the signals that were sent before.
    private func nextSignal() async -> Signal? {
        if Task.isCancelled { signals.close() }
        return await signals.next()
    }

    /// Passes a signal to the machine.
    private func take(_ signal: Signal) -> [DownloadMachine.Effect] {
        state.withLock { state in
            let now = MonotonicTime.now()
            switch signal {
            case .effects(let effects): return effects
            case .ended(let id, let end):
                state.transfers[id] = nil
                return state.machine.ended(id, end, now: now, random: Double.random(in: 0..<1))
            case .tick:
                let elapsed = now.since(state.began)
                if let limit = options.timeLimit, elapsed >= limit, !state.machine.isOver {
                    return state.machine.fail(
                        HTTPError(
                            .timedOut, phase: .receivingBody,
                            message: "the total timeout expired, after \(HTTPError.text(elapsed))", method: .get,
                            url: url, timeout: .total, elapsed: elapsed))
                }
                state.machine.allow(segments: session.segmentLimit, now: now)
                return state.machine.tick(now, hold: job.hold)
            case .checkpointed:
                state.machine.checkpointed(now)
                return []
            case .broken(let error, let keeps):
                state.keeps = state.keeps && keeps
                return state.machine.isOver ? [] : state.machine.fail(error)
            }
        }
    }

    private func perform(_ effects: [DownloadMachine.Effect], in group: inout TaskGroup<Void>) -> Outcome? {
        var outcome: Outcome?
        for effect in effects {
            switch effect {
            case .begin(let request):
                let control = TransferControl(reportsProgress: false)
                let isAlone = state.withLock { state in
                    state.transfers[request.id] = Transfer(control: control)
                    return state.machine.transfers.count == 1
                }
                group.addTask {
                    self.report(request.id, await self.transfer(request, control, mayWait: isAlone) {})
                }
            case .cancel(let id): state.withLock { $0.transfers.removeValue(forKey: id) }?.control.cancel()
            case .checkpoint: group.addTask { await self.checkpoint() }
            case .complete: outcome = .complete
            case .fail(let error): outcome = .failed(error)
            case .emit(let event):
                job.report(event, total: state.withLock { $0.machine.plan?.total })
                guard case .retrying(_, let delay, _) = event else { continue }
                state.withLock { $0.metrics.retryCount += 1 }
                if delay > .zero {
                    group.addTask { [signals] in
                        try? await Task.sleep(for: delay)
                        signals.send(.tick)
                    }
                }
            }
        }
        return outcome
    }

    // MARK: Calls of workers

    func accept(_ id: UInt64, _ count: UInt64) -> (offset: UInt64, count: UInt64, wantsMore: Bool)? {
        let now = MonotonicTime.now()
        let (accepted, isDue) = state.withLock { state in
            state.transfers[id]?.handledByteCount += count
            let isDue = now.since(state.lastPublished) >= .milliseconds(100)
            return (state.machine.accept(id, count, now: now), isDue)
        }
        if isDue { publishProgress() }
        return accepted
    }

    func exceedsLimit(_ end: UInt64) -> Bool { state.withLock { $0.machine.exceedsLimit(end) } }

    func wrote(_ id: UInt64, _ range: Range<UInt64>) { post(state.withLock { $0.machine.wrote(id, range) }) }

    /// Passes effects to the supervision of the download, or holds them until it starts.
    func post(_ effects: [DownloadMachine.Effect]) {
        guard !effects.isEmpty else { return }
        let areHeld = state.withLock { $0.heldEffects?.append(contentsOf: effects) != nil }
        if !areHeld { signals.send(.effects(effects)) }
    }

    /// Reports the end of a transfer; `nil` if its call was cancelled by the program, which ends the download.
    private func report(_ id: UInt64, _ end: DownloadMachine.TransferOutcome?) {
        if let end { signals.send(.ended(id, end)) } else { signals.close() }
    }

    /// Lets time pass. Without supervision there is only the progress to publish.
    fileprivate func tick() {
        if state.withLock({ $0.heldEffects == nil }) { signals.send(.tick) } else { publishProgress() }
    }

    func publishProgress(isLast: Bool = false) {
        let now = MonotonicTime.now()
        job.status.updateProgress { state.withLock { $0.progress(isLast: isLast, at: now) } }
    }
}

/// A clock that ticks 20 times a second on the event loop's thread, until it is released. The loop refers to it weakly;
/// a weak reference to the run would make each retain of the run slow.
private final class RunClock: TimerTarget {
    private let run: DownloadRun

    init(_ run: DownloadRun) { self.run = run }

    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        run.tick()
        return now.advanced(by: .milliseconds(50))
    }
}

extension DownloadRun.State {
    /// Returns the progress, and the rate up to now.
    fileprivate mutating func progress(isLast: Bool, at now: MonotonicTime) -> DownloadProgress {
        lastPublished = now
        let waiting =
            isLast ? [:] : transfers.filter { machine.receiving.contains($0.key) }.mapValues(\.waitingByteCount)
        var progress = DownloadProgress()
        progress.writtenByteCount = leftByteCount ?? machine.plan?.writtenCount ?? 0
        progress.totalByteCount = machine.plan?.total
        progress.completedByteCount = progress.writtenByteCount
        if !isLast, let plan = machine.plan {
            let received = plan.receivedCount(waiting: waiting)
            shown = (
                machine.generation, shown.generation == machine.generation ? max(shown.byteCount, received) : received
            )
            progress.completedByteCount = shown.byteCount
        }
        progress.resumedByteCount = machine.resumedByteCount
        progress.receivedByteCount = machine.receivedByteCount + waiting.values.reduce(0, +)
        progress.connectionCount = machine.receiving.count
        progress.isFinished = isLast
        if progress.receivedByteCount > ratedByteCount {
            rate.add(progress.receivedByteCount - ratedByteCount, at: now)
            ratedByteCount = progress.receivedByteCount
        }
        if !isLast {
            progress.bytesPerSecond = rate.value(at: now)
            progress.stalled = rate.stalled(at: now)
        }
        return progress
    }
}
