import Martlet

/// Carries a command line out: all its transfers, one after the other, on connections they share.
struct GetRunner: Sendable {
    /// The options, group by group.
    let groups: [OptionGroup]

    /// Runs everything.
    /// - Returns: What the program exits with: as curl, the status of the last transfer.
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
        for (group, plans) in zip(groups, planned) {
            let usesTLS = plans.contains { $0.url.scheme == .https } || group.transfer.followsRedirects
            var configuration = try SessionPlan.configuration(for: group.transfer, usesTLS: usesTLS)
            caches.apply(group.transfer, to: &configuration)
            let hasCookies = CookiePlan.isActive(group.transfer)
            if hasCookies {
                await CookiePlan.fill(jar, for: group.transfer)
                configuration.cookies = jar
            }
            let view = session?.with { $0 = configuration } ?? HTTPSession(configuration: configuration)
            session = session ?? view
            var endsHere = false
            for plan in plans {
                let report = await Transfer(plan, session: view, global: global, log: log).run()
                status = report.status
                endsHere =
                    status == .interrupted || status == .writeFailed
                    || (status != .success && global.stopsAtFirstError)
                if endsHere { break }
            }
            if let name = group.transfer.cookieOutput { await CookiePlan.write(jar, to: name, global) }
            if endsHere { return status }
        }
        return status
    }
}
