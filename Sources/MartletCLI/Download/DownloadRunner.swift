import Martlet

/// Runs all downloads of a command line, concurrently within the limits.
struct DownloadRunner: Sendable {
    let plans: [DownloadPlan]
    let group: TransferOptions
    let starter: any DownloadBackend
    let screen: DownloadScreen
    /// The maximum number of concurrent downloads, in all and per host; `nil` if the starter has a queue with limits.
    let limits: (files: Int, perHost: Int)?

    /// Runs all downloads, until they end or `interruption` returns a signal. Returns the exit code of the first URL
    /// that failed; after a signal, 128 plus its number.
    func run(interruption: @escaping @Sendable () async -> Int32?) async -> ExitStatus {
        let runningDownloads = RunningDownloads(starter)
        let signal = CurrentValue<Int32?>(nil)
        // Both are unstructured: a signal may never arrive, and drawing must not delay the downloads.
        let waiting = Task {
            guard let number = await interruption() else { return }
            signal.update { number }
            await runningDownloads.stop()
        }
        let drawing = Task { await screen.run() }
        await starter.prepare()
        let (outcomes, plans) = await outcomes(runningDownloads)
        // Stopped downloads are closed before the program ends. Without a signal so far, the next one ends it.
        if signal.value == nil { waiting.cancel() }
        await waiting.value
        let number = signal.value
        drawing.cancel()
        await drawing.value
        let failure = plans.lazy.compactMap { outcomes[$0.number]?.status }.first
        guard let number else {
            let status = failure ?? .success
            await screen.finish(status)
            return status
        }
        let status = ExitStatus(code: 128 + number)
        await screen.finish(status, summaryMessage: await summaryMessage(outcomes, plans))
        return status
    }

    /// The outcomes by number, and all plans: also those of Metalink documents.
    private func outcomes(_ runningDownloads: RunningDownloads) async -> ([Int: DownloadOutcome], [DownloadPlan]) {
        await withTaskGroup(of: (Int, DownloadOutcome, [DownloadListEntry])?.self) { tasks in
            var plans = plans
            var scheduler = DownloadScheduler(
                hosts: plans.map { $0.url.host }, limit: limits?.files ?? plans.count,
                limitPerHost: limits?.perHost ?? plans.count)
            var outcomes: [Int: DownloadOutcome] = [:]
            var runningCount = 0
            var directories: Set<String> = []
            // A download stopped shortly after its start, or in a closed queue, ends without an event: cancel its task.
            tasks.addTask {
                await runningDownloads.untilStopped()
                return nil
            }
            while true {
                if runningDownloads.isStopping { scheduler.stop() }
                while let index = scheduler.next() {
                    var run = DownloadRun(plan: plans[index], runner: self, runningDownloads: runningDownloads)
                    if group.makesDownloadDirectories {
                        do { try await run.plan.makeDirectory(&directories) } catch { run.directoryError = error }
                    }
                    runningCount += 1
                    tasks.addTask { [run] in
                        let (outcome, entries) = await run.run()
                        return (index, outcome, entries)
                    }
                }
                guard runningCount > 0, let ended = await tasks.next() else {
                    tasks.cancelAll()
                    return (outcomes, plans)
                }
                guard let (index, outcome, entries) = ended else {
                    tasks.cancelAll()
                    continue
                }
                runningCount -= 1
                scheduler.end(index)
                outcomes[plans[index].number] = outcome
                // The options were parsed before, for the document, and the names of the files are valid.
                if !entries.isEmpty, let common = try? DownloadPlan.Common(group) {
                    for entry in entries {
                        guard let plan = try? DownloadPlan(entry, group, common, number: plans.count + 1, nil) else {
                            continue
                        }
                        plans.append(plan)
                        scheduler.add(host: plan.url.host)
                        await screen.expectFile()
                    }
                }
                if outcome.status != nil, group.global.stopsAtFirstError {
                    scheduler.stop()
                    await runningDownloads.stop()
                }
            }
        }
    }

    private func summaryMessage(_ outcomes: [Int: DownloadOutcome], _ plans: [DownloadPlan]) async -> String? {
        let left = plans.filter { plan in if case .finished? = outcomes[plan.number] { false } else { true } }
        guard !left.isEmpty else { return nil }
        return DownloadText(usesUnicode: Environment.speaksUTF8).resumption(
            left: left.map(\.url.redacted), of: plans.count, kept: await screen.resumableByteCount,
            stateDirectory: group.download.stateDirectory)
    }
}

/// Runs one plan: starts its download, follows it, and ends it when its timeout expires.
struct DownloadRun: Sendable {
    let plan: DownloadPlan
    let runner: DownloadRunner
    let runningDownloads: RunningDownloads
    /// The error of creating the directory of the file.
    var directoryError: (any Error)?

    private var screen: DownloadScreen { runner.screen }
    private var retryTimeLimit: Duration? { runner.group.retries.timeLimit }

    /// Runs the download to its end. If the task is cancelled, returns after the events that are already buffered.
    /// - Returns: The outcome, and the files of a Metalink document.
    func run() async -> (DownloadOutcome, [DownloadListEntry]) {
        let download: Download
        do {
            if let directoryError { throw directoryError }
            // A download without progress reports runs in this task, which saves a task and its wake-ups for each file.
            let isUnobserved = !screen.showsEvents && retryTimeLimit == nil && runner.group.totalTimeout == nil
            if isUnobserved, let session = (runner.starter as? SessionDownloads)?.session(for: plan) {
                let (download, controller) = try session.makeDownload(
                    plan.url, to: plan.target, options: plan.options)
                let start = ContinuousClock.now
                await controller.runOnce()
                return await end(download, DownloadRun.outcome(in: download.state) ?? .stopped, since: start)
            }
            download = try await runner.starter.begin(plan)
        } catch {
            let outcome: DownloadOutcome =
                switch error {
                case let error as HTTPError: .failed(error)
                case is CancellationError: .stopped
                default: .failed(HTTPError(.fileFailed, phase: .preparing, message: "\(error)", underlying: error))
                }
            await screen.end(plan, outcome)
            return (outcome, [])
        }
        await runningDownloads.add(plan.number, download)
        // A queued download is not shown until its turn.
        await DownloadRun.beginning(of: download)
        let start = ContinuousClock.now
        if screen.showsEvents { await screen.begin(plan, download) }
        let outcome = await follow(download)
        await runningDownloads.remove(plan.number)
        return await end(download, outcome, since: start)
    }

    /// Reports the end of the download, and returns the outcome and the files of a Metalink document.
    private func end(_ download: Download, _ reported: DownloadOutcome, since start: ContinuousClock.Instant) async
        -> (DownloadOutcome, [DownloadListEntry])
    {
        var (outcome, entries) = (reported, [DownloadListEntry]())
        // The queue of --state has its own limits, and no place for more downloads.
        if case .finished(let result) = outcome, runner.limits != nil, plan.followsMetalink,
            MetalinkList.isDocument(result)
        {
            do throws(HTTPError) { entries = try await MetalinkList.entries(of: result) } catch {
                outcome = .failed(error)
            }
        }
        let isFinished = if case .finished = outcome { true } else { false }
        if screen.showsEvents || !isFinished { await screen.end(plan, outcome, of: download, since: start) }
        if isFinished { await runner.starter.forget(download) }
        return (outcome, entries)
    }

    private func follow(_ download: Download) async -> DownloadOutcome {
        guard let timeLimit = runner.group.totalTimeout else { return await outcome(of: download) }
        return await withTaskGroup(of: DownloadOutcome?.self) { group in
            group.addTask { await outcome(of: download) }
            group.addTask {
                await DownloadRun.beginning(of: download)
                if (try? await Task.sleep(for: timeLimit)) != nil { await download.pause() }
                return nil
            }
            defer { group.cancelAll() }
            while let ended = await group.next() {
                guard let outcome = ended else {
                    group.cancelAll()
                    continue
                }
                // Only the timeout pauses a single download.
                if case .stopped = outcome, !runningDownloads.isStopping { return .outOfTime }
                return outcome
            }
            return .stopped
        }
    }

    /// Waits until a download has its turn.
    private static func beginning(of download: Download) async {
        for await state in download.states {
            if case .waiting = state { continue }
            return
        }
    }

    private func outcome(of download: Download) async -> DownloadOutcome {
        // Events are followed only if they are shown, or limit the retries.
        if screen.showsEvents || retryTimeLimit != nil {
            if let outcome = await events(of: download) { return outcome }
        } else {
            for await state in download.states { if let outcome = DownloadRun.outcome(in: state) { return outcome } }
        }
        return DownloadRun.outcome(in: download.state) ?? .stopped
    }

    private static func outcome(in state: DownloadState) -> DownloadOutcome? {
        switch state {
        case .finished(let result): .finished(result)
        case .failed(let error): .failed(error)
        case .paused, .cancelled: .stopped
        case .waiting, .running, .verifying: nil
        }
    }

    /// Follows the events up to the one that ends the download; `nil` if the events end without one.
    private func events(of download: Download) async -> DownloadOutcome? {
        let start = ContinuousClock.now
        for await event in download.events {
            await screen.take(event, of: plan.number)
            switch event {
            case .finished(let result): return .finished(result)
            case .failed(let error): return .failed(error)
            case .paused, .cancelled: return .stopped
            case .retrying(let error, let delay, _):
                guard let retryTimeLimit, ContinuousClock.now - start + delay > retryTimeLimit else { continue }
                await download.pause()
                return .failed(error)
            case .started, .restarted, .verifying, .urlUsed, .urlFailed: continue
            }
        }
        return nil
    }
}

/// Starts downloads for the runner, and stops them.
protocol DownloadBackend: Sendable {
    func prepare() async
    /// Starts a download, or adds it to a queue.
    func begin(_ plan: DownloadPlan) async throws -> Download
    /// Stops downloads so that they can be resumed, also by another process. Returns when all their files are closed.
    func stop(_ downloads: [Download]) async
    func forget(_ download: Download) async
}

extension DownloadBackend {
    func prepare() async {}
    func forget(_ download: Download) async {}
}

/// Downloads of a session, without a queue that outlives the program.
struct SessionDownloads: DownloadBackend {
    let session: HTTPSession
    /// The session of all URLs that a server named. Created once, because connections are pooled by session.
    private let anonymousSession: HTTPSession

    init(session: HTTPSession) { (self.session, anonymousSession) = (session, session.anonymous) }

    /// Returns the session of a plan.
    func session(for plan: DownloadPlan) -> HTTPSession { plan.isAnonymous ? anonymousSession : session }

    func begin(_ plan: DownloadPlan) async throws -> Download {
        try session(for: plan).startDownload(plan.url, to: plan.target, options: plan.options)
    }

    func stop(_ downloads: [Download]) async {
        await withTaskGroup(of: Void.self) { group in
            for download in downloads { group.addTask { await download.pause() } }
        }
    }
}

/// Downloads that belong to a directory and outlive the program (`--state`).
actor ManagedDownloads: DownloadBackend {
    nonisolated let manager: DownloadManager
    /// All downloads: those that were found in the directory, then the new ones.
    nonisolated let plans: [DownloadPlan]
    private let new: ArraySlice<DownloadPlan>
    private let makesDirectories: Bool
    private var begun: [Int: Result<Download, any Error>]
    /// Whether all new downloads are stored in the directory.
    private let isPrepared = CurrentValue(false)

    private init(
        _ manager: DownloadManager, _ found: [(DownloadPlan, Download)], _ new: [DownloadPlan], makesDirectories: Bool
    ) {
        self.manager = manager
        plans = found.map(\.0) + new
        self.new = plans[found.count...]
        self.makesDirectories = makesDirectories
        begun = Dictionary(found.map { ($0.0.number, .success($0.1)) }) { first, _ in first }
    }

    /// Opens the directory of `--state`, if given, and resumes its downloads. Plans that it has are not added again.
    static func open(
        _ group: TransferOptions, _ plans: [DownloadPlan], _ caller: CredentialPlan, _ session: HTTPSession
    ) async throws(UsageError) -> ManagedDownloads? {
        let download = group.download
        guard let directory = download.stateDirectory else { return nil }
        let access = try DownloadCredentials(plans, group, caller)
        let anonymousSession = session.anonymous
        let limits = DownloadLimits(
            concurrentFiles: download.fileLimit, perHost: download.fileLimitPerHost,
            connectionsPerHost: max(6, download.options.segments))
        do {
            let manager = try await DownloadManager(
                session: session, directory: FilePath(directory), limits: limits,
                make: { plan, status, slots in
                    var plan = plan
                    let isOwn = access.grant(&plan)
                    return DownloadJob(plan, session: isOwn ? session : anonymousSession, slots: slots, status: status)
                })
            let found = await found(in: manager)
            let known = Set(found.map { key($0.0) })
            var new = plans.filter { !known.contains(key($0)) }
            for index in new.indices { new[index].number = found.count + index + 1 }
            return ManagedDownloads(manager, found, new, makesDirectories: group.makesDownloadDirectories)
        } catch let error as HTTPError {
            throw UsageError("option --state: \(error.message)", status: DownloadOutcome.status(of: error))
        } catch { throw UsageError("option --state: \(error)", status: .writeFailed) }
    }

    /// The identity of a download: its URL and its target.
    private static func key(_ plan: DownloadPlan) -> [String] {
        let (kind, given) =
            switch plan.target.kind {
            case .file(let path): ("file", path)
            case .directory(let path): ("directory", path)
            }
        let absolute = (try? WorkingDirectory.absolute(given.string)).map { FilePath($0) } ?? given
        return [plan.url.absoluteForm, kind, absolute.lexicallyNormalized().string]
    }

    /// The downloads of the directory, in the order of their addition. Paused and failed ones are resumed.
    private static func found(in manager: DownloadManager) async -> [(DownloadPlan, Download)] {
        var found: [(DownloadPlan, Download)] = []
        for download in manager.all {
            switch download.state {
            case .cancelled: continue
            case .paused, .failed: try? await download.resume()
            case .waiting, .running, .verifying, .finished: break
            }
            found.append((DownloadPlan(download, number: found.count + 1), download))
        }
        return found
    }

    /// Adds the new downloads, in order; also while the program is being stopped, so that they are in the directory.
    func prepare() async {
        var directories: Set<String> = []
        for plan in new { begun[plan.number] = await add(plan, &directories) }
        isPrepared.update { true }
    }

    private func add(_ plan: DownloadPlan, _ directories: inout Set<String>) async -> Result<Download, any Error> {
        do {
            if makesDirectories { try await plan.makeDirectory(&directories) }
            let id = try await manager.add(plan.url.absoluteString, to: plan.target, options: plan.options)
            guard let download = manager.download(id) else { throw CancellationError() }
            return .success(download)
        } catch { return .failure(error) }
    }

    func begin(_ plan: DownloadPlan) async throws -> Download {
        guard let result = begun[plan.number] else { throw CancellationError() }
        return try result.get()
    }

    /// Stops all downloads by closing the manager: pausing them one by one would store them as paused.
    func stop(_ downloads: [Download]) async {
        await isPrepared.becomesTrue()
        await manager.close()
    }

    /// Removes a complete download. If that fails, the next run reports it again.
    func forget(_ download: Download) async { try? await manager.remove(download.id) }
    func close() async { await manager.close() }
}
