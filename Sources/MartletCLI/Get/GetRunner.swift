import ArgumentParser
import Martlet

/// Runs all transfers of a command line, one after the other or concurrently, on shared connections.
struct GetRunner: Sendable {
    let groups: [TransferOptions]

    /// - Returns: The exit code: as in curl, that of the last transfer, or with `-Z` that of the last one to fail.
    func run() async throws(UsageError) -> ExitStatus {
        let global = groups.global
        if !global.isSilent { for warning in global.warnings { await Console.report("warning: \(warning)") } }
        var planned: [[TransferPlan]] = []
        for var group in groups {
            // A later group may have set global options.
            group.global = global
            let number = planned.reduce(0) { $0 + $1.count }
            let caller = try await CredentialPlan.load(group)
            planned.append(try TransferPlan.plans(for: group, from: number, caller: caller))
        }
        let hsts = try HSTSPlan(groups)
        let caches = try await CachePlan(groups)
        var log: HARFile?
        if let name = global.harFile { log = try await HARFile(name) }
        var session: HTTPSession?
        let result: Result<ExitStatus, UsageError>
        do throws(UsageError) { result = .success(try await run(planned, global, log, caches, hsts, &session)) } catch {
            result = .failure(error)
        }
        await log?.close()
        await hsts.save(global)
        await caches.end(session)
        return try result.get()
    }

    private func run(
        _ planned: [[TransferPlan]], _ global: GlobalOptions, _ log: HARFile?, _ caches: CachePlan,
        _ hsts: HSTSPlan, _ session: inout HTTPSession?
    ) async throws(UsageError) -> ExitStatus {
        // As in curl, all groups share their cookies.
        let jar = CookiePlan.makeJar()
        var status = ExitStatus.success
        var waiting: [Transfer] = []
        for (group, plans) in zip(groups, planned) {
            let view = try await self.view(of: &session, for: group, plans, caches, hsts, jar)
            if let name = group.headsFile {
                do throws(OutputError) { try await Console.write([], toFile: name, .truncate) } catch {
                    let error = UsageError("option -D: \(error)", status: .writeFailed)
                    if global.isParallel || global.stopsAtFirstError { throw error }
                    if global.printsErrors { await error.printMessage() }
                    status = error.status
                    continue
                }
            }
            let transfers = plans.map { Transfer($0, session: view, global: global, log: log) }
            if global.isParallel {
                waiting += transfers
                continue
            }
            var endsHere = false
            for transfer in transfers where !endsHere {
                let report = await transfer.run()
                status = report.status
                // A file that cannot be written fails only its own transfer; broken standard output ends the run.
                endsHere =
                    status == .interrupted || report.isOutputBroken || (status != .success && global.stopsAtFirstError)
            }
            if let name = group.cookieOutput { await CookiePlan.write(jar, to: name, global) }
            if endsHere { return status }
        }
        guard global.isParallel else { return status }
        status = await GetRunner.runConcurrently(waiting, global)
        for name in groups.compactMap(\.cookieOutput) { await CookiePlan.write(jar, to: name, global) }
        return status
    }

    /// The session for a group: a view that shares the connections of all groups.
    private func view(
        of session: inout HTTPSession?, for group: TransferOptions, _ plans: [TransferPlan], _ caches: CachePlan,
        _ hsts: HSTSPlan, _ jar: CookieJar
    ) async throws(UsageError) -> HTTPSession {
        let usesTLS =
            plans.contains { $0.url.scheme == .https } || group.redirects.followsRedirects || group.hstsFile != nil
        var configuration = try await SessionPlan.configuration(for: group, usesTLS: usesTLS, jar: jar)
        if groups.global.isParallel {
            let limit = groups.global.parallelLimit
            configuration.pool.connectionsPerHost = max(configuration.pool.connectionsPerHost, limit)
            configuration.pool.totalConnections = max(configuration.pool.totalConnections, limit)
        }
        caches.apply(group, to: &configuration)
        configuration.hsts = hsts.store(for: group)
        let view = session?.with { $0 = configuration } ?? ProgramSessions.shared.make(configuration)
        session = session ?? view
        return view
    }

    /// Runs transfers concurrently within the limit. Returns the last failure; with `--fail-early` the first.
    private static func runConcurrently(_ transfers: [Transfer], _ global: GlobalOptions) async -> ExitStatus {
        await withTaskGroup(of: ExitStatus.self) { tasks in
            for transfer in transfers.prefix(global.parallelLimit) { tasks.addTask { await transfer.run().status } }
            var waiting = transfers.dropFirst(global.parallelLimit)
            var status = ExitStatus.success
            while let ended = await tasks.next() {
                if ended != .success { status = ended }
                if status != .success, global.stopsAtFirstError {
                    tasks.cancelAll()
                    return status
                }
                if let transfer = waiting.popFirst() { tasks.addTask { await transfer.run().status } }
            }
            return status
        }
    }
}

struct GetCommand: WordsCommand {
    static let path = ["get"]
    static let options = CommandOptions(OptionTable.all, usage: "martlet [get] [options] URL…")
    static let configuration = makeConfiguration("Fetch URLs and print the bodies, with the options of curl")

    @Argument(parsing: .captureForPassthrough, help: "Options and URLs, in any order") var words: [String] = []

    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus {
        try await GetRunner(groups: groups).run()
    }
}
