import ArgumentParser
import Martlet

/// Carries a command line out: all its transfers, one after the other or at the same time, on connections they share.
struct GetRunner: Sendable {
    /// The options, group by group.
    let groups: [OptionGroup]

    /// Runs everything.
    /// - Returns: What the program exits with: as curl, the status of the last transfer, or with `-Z` of the last that failed.
    func run() async -> ExitStatus {
        let global = groups.last?.global ?? GlobalOptions()
        if !global.isSilent {
            for warning in global.warnings { await Console.complain("martlet: warning: \(warning)\n") }
        }
        do throws(UsageError) {
            return try await runGroups(global)
        } catch {
            if global.tellsErrors { await error.tell() }
            return error.status
        }
    }

    private func runGroups(_ global: GlobalOptions) async throws(UsageError) -> ExitStatus {
        var planned: [[TransferPlan]] = []
        for group in groups {
            let number = planned.reduce(0) { $0 + $1.count }
            let caller = try await CallerPlan.load(group.transfer)
            planned.append(try TransferPlan.plans(for: group.transfer, from: number, caller: caller))
        }
        let caches = try await CachePlan(groups, global)
        var log: HARFile?
        if let name = global.harFile { log = try await HARFile(name) }
        var session: HTTPSession?
        let result: Result<ExitStatus, UsageError>
        do throws(UsageError) {
            result = .success(try await run(planned, global, log, caches, &session))
        } catch {
            result = .failure(error)
        }
        await log?.close()
        await caches.end(session)
        return try result.get()
    }

    private func run(
        _ planned: [[TransferPlan]], _ global: GlobalOptions, _ log: HARFile?, _ caches: CachePlan,
        _ session: inout HTTPSession?
    ) async throws(UsageError) -> ExitStatus {
        // Cookies are those of the whole command line, as in curl.
        let jar = CookiePlan.makeJar()
        var status = ExitStatus.success
        var waiting: [Transfer] = []
        for (group, plans) in zip(groups, planned) {
            let view = try await self.view(of: &session, for: group, plans, caches, jar)
            if let name = group.transfer.headsFile {
                do throws(UsageError) {
                    try await HeadsFile(name).begin()
                } catch {
                    if global.isParallel || global.stopsAtFirstError { throw error }
                    if global.tellsErrors { await error.tell() }
                    status = error.status
                    continue
                }
            }
            let transfers = plans.map { Transfer($0, session: view, global: global, log: log) }
            if global.isParallel {
                waiting += transfers
                continue
            }
            let turn = await GetRunner.runInTurn(transfers, global)
            status = turn.status
            if let name = group.transfer.cookieOutput { await CookiePlan.write(jar, to: name, global) }
            if turn.endsHere { return status }
        }
        guard global.isParallel else { return status }
        status = await GetRunner.runAtOnce(waiting, global)
        for name in groups.compactMap(\.transfer.cookieOutput) {
            await CookiePlan.write(jar, to: name, global)
        }
        return status
    }

    /// The session as a group wants it; its connections are those of all groups.
    private func view(
        of session: inout HTTPSession?, for group: OptionGroup, _ plans: [TransferPlan], _ caches: CachePlan,
        _ jar: CookieJar
    ) async throws(UsageError) -> HTTPSession {
        let usesTLS = plans.contains { $0.url.scheme == .https } || group.transfer.followsRedirects
        var configuration = try await SessionPlan.configuration(
            for: group.transfer, group.global, usesTLS: usesTLS, jar: jar,
            asJSON: group.global.shownProgress == .json)
        if let global = groups.last?.global, global.isParallel {
            let limit = global.parallelLimit
            configuration.pool.connectionsPerHost = max(configuration.pool.connectionsPerHost, limit)
            configuration.pool.totalConnections = max(configuration.pool.totalConnections, limit)
        }
        caches.apply(group.transfer, to: &configuration)
        let view = session?.with { $0 = configuration } ?? ProgramSessions.shared.make(configuration)
        session = session ?? view
        return view
    }

    /// Makes transfers one after the other.
    /// - Returns: The status of the last one, and whether none must follow.
    private static func runInTurn(
        _ transfers: [Transfer], _ global: GlobalOptions
    ) async -> (status: ExitStatus, endsHere: Bool) {
        var status = ExitStatus.success
        for transfer in transfers {
            let report = await transfer.run()
            status = report.status
            // A file that cannot be written is the fault of its own transfer alone.
            let endsHere =
                status == .interrupted || report.isOutputBroken
                || (status != .success && global.stopsAtFirstError)
            if endsHere { return (status, true) }
        }
        return (status, false)
    }

    /// Makes transfers at the same time, as many as may be, and begins another whenever one has ended.
    /// - Returns: The status of the one that failed last; with `--fail-early` that of the first, which ends the others.
    private static func runAtOnce(_ transfers: [Transfer], _ global: GlobalOptions) async -> ExitStatus {
        await withTaskGroup(of: ExitStatus.self) { tasks in
            var waiting = transfers[...]
            for _ in 0..<global.parallelLimit {
                guard let transfer = waiting.popFirst() else { break }
                tasks.addTask { await transfer.run().status }
            }
            var status = ExitStatus.success
            while let ended = await tasks.next() {
                if ended != .success { status = ended }
                if status != .success, global.stopsAtFirstError {
                    tasks.cancelAll()
                    return status
                }
                if let transfer = waiting.popFirst() {
                    tasks.addTask { await transfer.run().status }
                }
            }
            return status
        }
    }
}

/// `martlet get`, which is also what `martlet` does without a command's name: curl's options, read by a
/// reader of their own.
struct GetCommand: WordsCommand {
    static let configuration = CommandConfiguration(
        words: "get", abstract: "Fetch URLs and print what they give, with curl's options.")

    @Argument(parsing: .captureForPassthrough, help: "Options and URLs, in any order.")
    var words: [String] = []

    static func run(_ words: [String]) async throws {
        let groups = try await CommandWords(options: OptionTable.commandOptions).groups(of: words)
        let status = await GetRunner(groups: groups).run()
        if status != .success { throw status }
    }
}
