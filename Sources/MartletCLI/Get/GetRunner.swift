import Martlet

/// Carries a command line out: all its transfers, one after the other, on connections they share.
struct GetRunner: Sendable {
    /// The options, group by group.
    let groups: [OptionGroup]

    /// Runs everything.
    /// - Returns: What the program exits with: as curl, the status of the last transfer.
    func run() async -> ExitStatus {
        let global = groups.last?.global ?? GlobalOptions()
        do throws(UsageError) {
            return try await runGroups(global)
        } catch {
            if !global.isSilent || global.showsErrors {
                await Console.complain("martlet: (\(error.status.code)) \(error)\n")
            }
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
        var log: HARFile?
        if let name = global.harFile { log = try await HARFile(name) }
        let status: ExitStatus
        do throws(UsageError) {
            status = try await run(planned, global, log)
        } catch {
            await log?.close()
            throw error
        }
        await log?.close()
        return status
    }

    private func run(
        _ planned: [[TransferPlan]], _ global: GlobalOptions, _ log: HARFile?
    ) async throws(UsageError) -> ExitStatus {
        var session: HTTPSession?
        // Cookies are those of the whole command line, as in curl.
        let jar = CookiePlan.makeJar()
        var status = ExitStatus.success
        for (group, plans) in zip(groups, planned) {
            let usesTLS = plans.contains { $0.url.scheme == .https } || group.transfer.followsRedirects
            var configuration = try SessionPlan.configuration(for: group.transfer, usesTLS: usesTLS)
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
