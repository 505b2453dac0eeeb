import ArgumentParser
import Martlet

/// `martlet download`: files, in segments, resumed and verified; with options that are read as those of `get`.
struct DownloadCommand: WordsCommand {
    static let path = ["download"]
    static let configuration = makeConfiguration(
        "Download files: segments, resume, checksums, progress bars")

    @Argument(parsing: .captureForPassthrough, help: "Options and URLs, in any order.")
    var words: [String] = []

    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus {
        let group = groups[0]
        var lists: [DownloadListEntry] = []
        for name in group.download.lists {
            let bytes = try InputFile.contents(of: name)
            lists += try DownloadList.entries(
                of: bytes, named: name, disablesGlobbing: group.disablesGlobbing)
        }
        let caller = try await CredentialPlan.load(group)
        var plans = try DownloadPlan.plans(for: group, lists: lists, caller: caller)
        let session = ProgramSessions.shared.make(try await configuration(group, plans))
        let form = ProgressStyle(
            group.global, isTerminal: Console.errorIsTerminal, usesUnicode: Environment.speaksUTF8
        ) { Environment[$0] }
        let managed = try await ManagedDownloads.open(group, plans, caller, session)
        if let managed { plans = managed.plans }
        let screen = DownloadScreen(form: form, fileCount: plans.count)
        let runner = DownloadRunner(
            plans: plans, group: group, starter: managed ?? SessionDownloads(session: session),
            screen: screen,
            limits: managed == nil ? (group.download.fileLimit, group.download.fileLimitPerHost) : nil)
        if let managed { await tellFindings(of: managed, on: screen, form) }
        let warning = managed.map { tellFaults(of: $0, on: screen) }
        // Unstructured: it ends with the session.
        let telling =
            group.global.isVerbose && form.progress != .json
            ? session.tellEvents { line in
                await screen.say("* \(ColumnText.safe(line, usesUnicode: form.usesUnicode))")
            } : nil
        let status = await runner.run { await SignalHandler.next() }
        await managed?.close()
        telling?.cancel()
        warning?.cancel()
        if let name = group.cookieOutput, let jar = session.configuration.cookies {
            await CookiePlan.write(jar, to: name, group.global)
        }
        await Console.flush()
        return status
    }

    private static func configuration(
        _ group: TransferOptions, _ plans: [DownloadPlan]
    ) async throws(UsageError) -> SessionConfiguration {
        let usesTLS =
            group.redirects.followsRedirects || group.download.stateFolder != nil
            || plans.contains { $0.url.scheme == .https }
        var configuration = try await SessionPlan.configuration(
            for: group, usesTLS: usesTLS, jar: CookiePlan.makeJar())
        if let rate = group.download.rate { configuration.bandwidth.total.download = .bytesPerSecond(rate) }
        // As in browsers: many files in many segments must not look like an attack.
        configuration.pool.connectionsPerHost = max(6, group.download.segments)
        return configuration
    }

    /// Reports faults of the directory, and that it is empty.
    private static func tellFindings(
        of managed: ManagedDownloads, on screen: DownloadScreen, _ form: ProgressStyle
    ) async {
        for event in managed.manager.pastEvents {
            switch event {
            case .itemQuarantined(let path, let reason):
                await screen.warn("a download of the queue is lost: \(path): \(reason)")
            case .itemSkipped(let path, let reason):
                await screen.warn("a download of the queue is left alone: \(path): \(reason)")
            default: break
            }
        }
        if managed.plans.isEmpty, form.tellsPeople { await screen.say("nothing is left to download") }
    }

    /// Reports failures to write to the directory, which do not stop the downloads.
    private static func tellFaults(
        of managed: ManagedDownloads, on screen: DownloadScreen
    ) -> Task<Void, Never> {
        let events = managed.manager.events
        return Task {
            for await event in events {
                guard case .fileFailed(let id, let error) = event else { continue }
                await screen.warn("download \(id) of the queue: \(error.message)")
            }
        }
    }
}

extension HTTPSession {
    /// Reports the session's events for `-v`.
    nonisolated func tellEvents(_ tell: @escaping @Sendable (String) async -> Void) -> Task<Void, Never> {
        let events = events
        return Task { for await event in events { await tell(event.description) } }
    }
}
