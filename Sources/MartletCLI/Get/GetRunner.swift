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
            planned.append(try TransferPlan.plans(for: group.transfer, from: number))
        }
        var session: HTTPSession?
        var status = ExitStatus.success
        for (group, plans) in zip(groups, planned) {
            let usesTLS = plans.contains { $0.url.scheme == .https }
            let configuration = try SessionPlan.configuration(for: group.transfer, usesTLS: usesTLS)
            let view = session?.with { $0 = configuration } ?? HTTPSession(configuration: configuration)
            session = session ?? view
            for plan in plans {
                let report = await Transfer(plan, session: view, global: global).run()
                status = report.status
                if status == .interrupted || status == .writeFailed { return status }
                if status != .success, global.stopsAtFirstError { return status }
            }
        }
        return status
    }
}
