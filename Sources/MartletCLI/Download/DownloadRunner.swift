import Martlet

/// Carries a command line out: all its downloads, concurrently within the limits.
struct DownloadRunner: Sendable {
    let plans: [DownloadPlan]
    let group: TransferOptions
    let starter: any DownloadBackend
    let screen: DownloadScreen
    /// The maximum number of concurrent downloads, in all and per host; `nil` if the starter has a queue with limits.
    let limits: (files: Int, perHost: Int)?

    /// - Parameter interruption: Returns the number of a signal that stops all.
    /// - Returns: The exit code: that of the first URL that failed.
    func run(interruption: @escaping @Sendable () async -> Int32) async -> ExitStatus {
        let roster = RunningDownloads(starter)
        let signal = CurrentValue<Int32?>(nil)
        // Unstructured, both: a signal may never come, and drawing must not delay the downloads.
        let waiting = Task {
            let number = await interruption()
            signal.update { number }
            await roster.stop()
        }
        let drawing = Task { await screen.run() }
        await starter.prepare()
        let outcomes = await outcomes(roster)
        let number = signal.value
        // Stopped downloads are closed before the program ends.
        if number != nil { await waiting.value }
        drawing.cancel()
        await drawing.value
        let failure = plans.lazy.compactMap { outcomes[$0.number]?.status }.first
        guard let number else {
            let status = failure ?? .success
            await screen.finish(status)
            return status
        }
        let status = ExitStatus(code: 128 + number)
        await screen.finish(status, summaryMessage: await summaryMessage(outcomes))
        return status
    }

    private func outcomes(_ roster: RunningDownloads) async -> [Int: DownloadOutcome] {
        await withTaskGroup(of: (Int, DownloadOutcome)?.self) { tasks in
            var line = DownloadScheduler(
                hosts: plans.map { $0.url.host }, limit: limits?.files ?? plans.count,
                limitPerHost: limits?.perHost ?? plans.count)
            var outcomes: [Int: DownloadOutcome] = [:]
            var runningCount = 0
            // A stopped download ends with an event, except shortly after its start or in a queue that was closed: then its
            // state tells, after its task is cancelled.
            tasks.addTask {
                await roster.untilStopped()
                return nil
            }
            while true {
                if roster.isStopping { line.stop() }
                while let index = line.next() {
                    let run = DownloadRun(
                        plan: plans[index], timeLimit: group.totalTimeout,
                        retryTimeLimit: group.retries.timeLimit,
                        makesFolders: group.makesFolders || group.download.folder != nil,
                        starter: starter, roster: roster, screen: screen)
                    runningCount += 1
                    tasks.addTask { (index, await run.run()) }
                }
                guard runningCount > 0, let ended = await tasks.next() else {
                    tasks.cancelAll()
                    return outcomes
                }
                guard let (index, outcome) = ended else {
                    tasks.cancelAll()
                    continue
                }
                runningCount -= 1
                line.end(index)
                outcomes[plans[index].number] = outcome
                if outcome.status != nil, group.global.stopsAtFirstError {
                    line.stop()
                    await roster.stop()
                }
            }
        }
    }

    private func summaryMessage(_ outcomes: [Int: DownloadOutcome]) async -> String? {
        let left = plans.filter { plan in if case .finished? = outcomes[plan.number] { false } else { true } }
        guard !left.isEmpty else { return nil }
        return DownloadText(usesUnicode: Environment.speaksUTF8).resumption(
            left: left.map(\.url.redacted), of: plans.count, kept: await screen.resumableByteCount,
            stateFolder: group.download.stateFolder)
    }
}
