import Martlet

/// Carries a command line out: all its downloads, side by side as far as the limits let them.
struct DownloadRunner: Sendable {
    /// What is downloaded.
    let plans: [DownloadPlan]
    /// The options.
    let group: OptionGroup
    /// What begins them.
    let starter: any DownloadStarting
    /// Where it is shown.
    let screen: DownloadScreen
    /// How many begin at once, and of one host; `nil` where the starter has a queue that sees to it.
    let limits: (files: Int, perHost: Int)?

    /// Runs everything.
    /// - Parameter interruption: Returns the number of a signal that stops all.
    /// - Returns: What the program exits with: the status of the first URL that failed.
    func run(interruption: @escaping @Sendable () async -> Int32) async -> ExitStatus {
        let roster = DownloadRoster(starter)
        let signal = Signal()
        // Unstructured, both: a signal may never come, and what is drawn must not hold the downloads up.
        let waiting = Task {
            await signal.note(await interruption())
            await roster.stop()
        }
        let drawing = Task { await screen.run() }
        await starter.prepare()
        let outcomes = await outcomes(roster)
        let number = await signal.number
        // What is being stopped is closed before the program ends.
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
        await screen.finish(status, farewell: await farewell(outcomes))
        return status
    }

    /// The signal that stopped all, if one did.
    private actor Signal {
        private(set) var number: Int32?

        func note(_ number: Int32) { self.number = number }
    }

    private func outcomes(_ roster: DownloadRoster) async -> [Int: DownloadOutcome] {
        await withTaskGroup(of: (Int, DownloadOutcome)?.self) { tasks in
            var line = DownloadLine(
                hosts: plans.map { $0.url.host }, limit: limits?.files ?? plans.count,
                limitPerHost: limits?.perHost ?? plans.count)
            var outcomes: [Int: DownloadOutcome] = [:]
            var runningCount = 0
            // What was stopped says so itself, unless it had hardly begun, or is of a queue that was closed: then its state
            // does, once its task is cancelled.
            tasks.addTask {
                await roster.untilStopped()
                return nil
            }
            while true {
                if roster.isStopping { line.stop() }
                while let index = line.next() {
                    let run = run(plans[index], roster)
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

    private func run(_ plan: DownloadPlan, _ roster: DownloadRoster) -> DownloadRun {
        DownloadRun(
            plan: plan, timeLimit: group.transfer.totalTimeout,
            retryTimeLimit: group.transfer.retries.timeLimit, makesFolders: group.transfer.makesFolders,
            starter: starter, roster: roster, screen: screen)
    }

    private func farewell(_ outcomes: [Int: DownloadOutcome]) async -> String? {
        let left = plans.filter { plan in if case .finished? = outcomes[plan.number] { false } else { true } }
        guard !left.isEmpty else { return nil }
        return DownloadText(usesUnicode: Environment.speaksUTF8).resumption(
            left: left.map(\.url.redacted), of: plans.count, kept: await screen.keptByteCount,
            stateFolder: group.download.stateFolder)
    }
}
