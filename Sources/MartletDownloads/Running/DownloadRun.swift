import MartletURL
import MartletCaching
import MartletCore
import MartletDiagnostics
import MartletNetwork
import MartletStreams
import MartletStorage
import MartletTransport
import Synchronization

/// One run of a download: it carries out what its machine decides.
///
/// Transfers and checkpoints are tasks of one group, which tell the run by signals what has happened, as the clock does. The
/// machine is behind a lock, since workers that write ask it for each block.
final class DownloadRun: Sendable {
    /// What has happened.
    enum Signal: Sendable {
        /// Effects of what a worker told the machine.
        case effects([DownloadMachine.Effect])
        case ended(UInt64, DownloadMachine.End)
        case tick
        case checkpointed
        /// The bytes that are there can no longer be trusted, or not be noted.
        case broken(HTTPError, keeps: Bool)
    }

    /// How a run ended.
    package enum Outcome: Sendable {
        /// All bytes are there.
        case complete
        case failed(HTTPError)
        /// Its task was cancelled.
        case stopped
    }

    /// What the run knows.
    struct State {
        var machine: DownloadMachine
        var rate: ProgressRate
        var part: PartFile?
        var controls: [UInt64: TransferControl] = [:]
        var toldAt = MonotonicTime(nanoseconds: 0)
        var keeps = true
        /// How many bytes are left at the end of the run, where these are not those of its last beginning.
        var leftByteCount: UInt64?
        /// The last beginning that is in need of an empty file; 0 for none.
        var begunAnew: UInt32 = 0
        /// The name that the file got as soon as its last bytes were written.
        var name: PublishedName?

        /// Where bytes go that come now.
        var place: Place {
            Place(
                epoch: machine.generation, isAnew: begunAnew == machine.generation, total: machine.plan?.total
            )
        }
    }

    /// What the file is that bytes go to.
    struct Place {
        /// Which beginning of the download it is of.
        var epoch: UInt32
        /// Whether that begins with an empty file.
        var isAnew: Bool
        /// How long the file will be, where that is known.
        var total: UInt64?
    }

    let job: DownloadJob
    let session: HTTPSession
    let files: any FileSystem
    let url: HTTPURL
    let options: DownloadOptions
    let noting: DownloadJob.Noting?
    let signals = Mailbox<Signal>()
    /// Guards the above: transfers' tasks and their workers.
    let state: Mutex<State>
    /// Held by the worker that opens the part file.
    let opening = Mutex(())

    init(_ job: DownloadJob, noting: DownloadJob.Noting?) {
        self.job = job
        self.noting = noting
        session = job.session
        files = job.files
        url = job.url
        options = job.plan.options
        let now = MonotonicTime.now()
        state = Mutex(
            State(
                machine: DownloadMachine(url: job.url, options: job.plan.options, now: now),
                rate: ProgressRate(from: now)))
    }

    // MARK: The whole

    /// Runs until the file is there, or it is given up, or the task is cancelled: then what has come is kept.
    func run() async throws -> DownloadResult {
        defer {
            // Workers may still hold what they have written to.
            state.withLock { $0.part }?.close()
            tellProgress(isLast: true)
        }
        do {
            let record = try await job.openPart { part in self.takeUp(part) }
            return try await run(from: record ?? nil)
        } catch let error as HTTPError { throw error } catch let error as StorageError {
            throw HTTPError(storage: error, origin: url.origin.description)
        }
    }

    /// Takes up a part file that was opened.
    /// - Returns: The record of what is there, where it is of use. It is read, which blocks.
    private func takeUp(_ part: PartFile) -> ResumeRecord? {
        state.withLock { $0.part = part }
        guard options.resumption != .restart, let record = part.record(), job.vouches(for: record) else {
            return nil
        }
        part.take(record)
        return record
    }

    private func run(from record: ResumeRecord?) async throws -> DownloadResult {
        var effects = state.withLock { $0.machine.start(record, now: MonotonicTime.now()) }
        while true {
            let outcome = await rounds(effects)
            switch outcome {
            // What has its name is complete, whatever was told meanwhile.
            case .stopped where name == nil:
                _ = state.withLock { $0.machine.stop() }
                _ = await keep()
                throw CancellationError()
            case .failed(let error) where name == nil: throw error.keeping(await keep())
            case .complete, .stopped, .failed:
                do {
                    return try await finish()
                } catch let mismatch as ChecksumMismatch {
                    job.status.become(.running)
                    state.withLock { $0.part }?.distrust()
                    effects = state.withLock {
                        $0.machine.mismatched(mismatch.error, now: MonotonicTime.now())
                    }
                    if case .fail(let error)? = effects.first {
                        state.withLock { $0.keeps = false }
                        throw error.keeping(await keep())
                    }
                } catch let unsynced as DownloadJob.UnsyncedName {
                    // The bytes have their name, and nothing is left to be kept under the other one.
                    throw unsynced.error
                } catch var error as HTTPError {
                    // All of it is there; what is wrong is the place it should go to, or the disk.
                    guard let count = await keep() else { throw error.keeping(nil) }
                    error.keptByteCount = count
                    throw error
                } catch {
                    _ = await keep()
                    throw error
                }
            }
        }
    }

    private var name: PublishedName? { state.withLock { $0.name } }

    /// Carries out effects, and those of what follows, until it is over. No transfer is on then.
    private func rounds(_ first: [DownloadMachine.Effect]) async -> Outcome {
        await withTaskGroup(of: Void.self, returning: Outcome.self) { group in
            if let outcome = perform(first, in: &group) { return outcome }
            let listener = DownloadClock.shared.add { [signals] in signals.send(.tick) }
            defer { DownloadClock.shared.remove(listener) }
            var outcome = Outcome.stopped
            while let signal = await nextSignal() {
                if let end = perform(take(signal), in: &group) {
                    outcome = end
                    break
                }
                tellProgress()
            }
            group.cancelAll()
            // Not by the group alone: their calls end at once.
            for control in state.withLock({ Array($0.controls.values) }) { control.cancel() }
            await group.waitForAll()
            return outcome
        }
    }

    /// What has happened next; nil when the task is cancelled, behind what has happened by then. What comes later of what was
    /// begun must not begin anything.
    private func nextSignal() async -> Signal? {
        if Task.isCancelled { signals.close() }
        return await signals.next()
    }

    /// Tells the machine what has happened.
    private func take(_ signal: Signal) -> [DownloadMachine.Effect] {
        state.withLock { state in
            let now = MonotonicTime.now()
            switch signal {
            case .effects(let effects): return effects
            case .ended(let id, let end):
                state.controls[id] = nil
                return state.machine.ended(id, end, now: now, random: Double.random(in: 0..<1))
            case .tick:
                state.machine.allow(segments: session.segmentLimit, now: now)
                return state.machine.tick(now, hold: job.hold)
            case .checkpointed:
                state.machine.checkpointed(now)
                return []
            case .broken(let error, let keeps):
                state.keeps = state.keeps && keeps
                guard !state.machine.isOver else { return [] }
                return state.machine.fail(error)
            }
        }
    }

    private func perform(_ effects: [DownloadMachine.Effect], in group: inout TaskGroup<Void>) -> Outcome? {
        var outcome: Outcome?
        for effect in effects {
            switch effect {
            case .begin(let question):
                let control = TransferControl(tellsProgress: false)
                let isAlone = state.withLock { state in
                    state.controls[question.id] = control
                    return state.machine.transfers.count == 1
                }
                group.addTask { await self.transfer(question, control, mayWait: isAlone) }
            case .cancel(let id): state.withLock { $0.controls[id] }?.cancel()
            case .checkpoint: group.addTask { await self.checkpoint() }
            case .complete: outcome = .complete
            case .fail(let error): outcome = .failed(error)
            case .tell(let event):
                job.status.events.add(event)
                if case .retrying(_, let delay, _) = event, delay > .zero {
                    group.addTask { [signals] in
                        try? await Task.sleep(for: delay)
                        signals.send(.tick)
                    }
                }
            }
        }
        return outcome
    }

    // MARK: Bytes, as workers write them

    func accept(_ id: UInt64, _ count: UInt64) -> (offset: UInt64, count: UInt64, wantsMore: Bool)? {
        let now = MonotonicTime.now()
        let (place, isDue) = state.withLock { state in
            state.rate.add(count, at: now)
            let isDue = now.since(state.toldAt) >= .milliseconds(100)
            return (state.machine.accept(id, count, now: now), isDue)
        }
        if isDue { tellProgress() }
        return place
    }

    func exceedsLimit(_ end: UInt64) -> Bool { state.withLock { $0.machine.exceedsLimit(end) } }

    func wrote(_ id: UInt64, _ range: Range<UInt64>) {
        let effects = state.withLock { $0.machine.wrote(id, range) }
        if !effects.isEmpty { signals.send(.effects(effects)) }
    }

    // MARK: Progress

    func tellProgress(isLast: Bool = false) {
        let now = MonotonicTime.now()
        job.status.progress.update {
            state.withLock { state in
                state.toldAt = now
                var progress = DownloadProgress()
                progress.completedByteCount = state.leftByteCount ?? state.machine.plan?.writtenCount ?? 0
                progress.totalByteCount = state.machine.plan?.total
                progress.resumedByteCount = state.machine.resumedByteCount
                progress.receivedByteCount = state.machine.receivedByteCount
                progress.connectionCount = state.machine.receiving.count
                progress.isFinished = isLast
                if !isLast {
                    progress.bytesPerSecond = state.rate.value(at: now)
                    progress.stalled = state.rate.stalled(at: now)
                }
                return progress
            }
        }
    }
}
