import Martlet

/// Carries one plan out: begins its download, follows it, and ends it when its time expires.
struct DownloadRun: Sendable {
    private enum Step: Sendable {
        case outcome(DownloadOutcome)
        case timeIsOver
        case stopped
    }

    let plan: DownloadPlan
    /// `-m`.
    let timeLimit: Duration?
    /// `--retry-max-time`.
    let retryTimeLimit: Duration?
    /// Whether a missing directory is created.
    let makesFolders: Bool
    let starter: any DownloadBackend
    let roster: RunningDownloads
    let screen: DownloadScreen

    /// Runs the download to its end. If the task is cancelled, it ends after the last event.
    func run() async -> DownloadOutcome {
        let download: Download
        do {
            if makesFolders { try await plan.makeFolder() }
            download = try await starter.begin(plan)
        } catch {
            let outcome = DownloadRun.outcome(of: error)
            await screen.end(plan, outcome)
            return outcome
        }
        await roster.add(plan.number, download)
        // In a queue, it is not shown until its turn.
        await DownloadRun.beginning(of: download)
        let start = ContinuousClock.now
        if screen.showsEvents { await screen.begin(plan, download) }
        let outcome = await follow(download)
        await roster.remove(plan.number)
        let isFinished = if case .finished = outcome { true } else { false }
        if screen.showsEvents || !isFinished { await screen.end(plan, outcome, of: download, since: start) }
        if isFinished { await starter.forget(download) }
        return outcome
    }

    private static func outcome(of error: any Error) -> DownloadOutcome {
        switch error {
        case let error as HTTPError: .failed(error)
        case is CancellationError: .stopped
        default: .failed(HTTPError(.fileFailed, phase: .preparing, message: "\(error)", underlying: error))
        }
    }

    // MARK: Following

    private func follow(_ download: Download) async -> DownloadOutcome {
        guard let timeLimit else { return await outcome(of: download) }
        return await withTaskGroup(of: Step.self) { group in
            group.addTask { .outcome(await outcome(of: download)) }
            group.addTask {
                await DownloadRun.beginning(of: download)
                guard (try? await Task.sleep(for: timeLimit)) != nil else { return .stopped }
                await download.pause()
                return .timeIsOver
            }
            defer { group.cancelAll() }
            while let step = await group.next() {
                switch step {
                // Nothing else pauses it.
                case .outcome(.stopped) where !roster.isStopping: return .outOfTime
                case .outcome(let outcome): return outcome
                case .timeIsOver, .stopped: group.cancelAll()
                }
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
            for await state in download.states {
                if let outcome = DownloadRun.outcome(in: state) { return outcome }
            }
        }
        return DownloadRun.outcome(in: download.state) ?? .stopped
    }

    /// The outcome of a download in a state; `nil` while it continues.
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
                guard let retryTimeLimit, ContinuousClock.now - start + delay > retryTimeLimit else {
                    continue
                }
                await download.pause()
                return .failed(error)
            case .started, .restarted, .verifying: continue
            }
        }
        return nil
    }
}

/// Begins downloads for the runner, and stops them.
protocol DownloadBackend: Sendable {
    /// Prepares for the first download.
    func prepare() async
    /// Begins a download, or puts it into a queue.
    /// - Throws: An `HTTPError` if it cannot begin.
    func begin(_ plan: DownloadPlan) async throws -> Download
    /// Stops downloads so that they can be resumed, by another process as well; returns when all their files are closed.
    func stop(_ downloads: [Download]) async
    /// Forgets a complete download that was reported.
    func forget(_ download: Download) async
}

extension DownloadBackend {
    func prepare() async {}

    func forget(_ download: Download) async {}
}

/// Downloads of a session, without a queue that outlives the program.
struct SessionDownloads: DownloadBackend {
    let session: HTTPSession

    func begin(_ plan: DownloadPlan) async throws -> Download {
        try session.startDownload(plan.url, to: plan.target, options: plan.options)
    }

    func stop(_ downloads: [Download]) async {
        await withTaskGroup(of: Void.self) { group in
            for download in downloads { group.addTask { await download.pause() } }
        }
    }
}
