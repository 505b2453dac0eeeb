import ArgumentParser
import Martlet

/// `martlet download`: files, in segments, resumed and verified; with options that are read as those of `get`.
struct DownloadCommand: WordsCommand {
    static let configuration = CommandConfiguration(
        words: "download",
        abstract: "Download files: in segments, resumed where they were cut, verified, with progress bars.")

    @Argument(parsing: .captureForPassthrough, help: "Options and URLs, in any order.")
    var words: [String] = []

    static func run(_ words: [String]) async throws {
        try await CommandWords(
            options: DownloadOptionTable.commandOptions, defaults: DownloadOptionTable.defaults,
            notes: DownloadJSON.help
        ).run(words) { group throws(UsageError) in try await status(of: group) }
    }

    private static func status(of group: OptionGroup) async throws(UsageError) -> ExitStatus {
        var lists: [DownloadListEntry] = []
        for name in group.download.lists {
            let bytes = try InputFile.contents(of: name)
            lists += try DownloadList.entries(
                of: bytes, named: name, takesBracesLiterally: group.transfer.takesBracesLiterally)
        }
        let caller = try await CallerPlan.load(group.transfer)
        var plans = try DownloadPlan.plans(for: group, lists: lists, caller: caller)
        let session = ProgramSessions.shared.make(try await configuration(group, plans))
        let form = DownloadForm(
            group.global, isTerminal: Console.errorIsTerminal, usesUnicode: Environment.speaksUTF8
        ) { Environment[$0] }
        let managed = try await ManagedDownloads.open(group, plans, caller, session)
        if let managed { plans = managed.plans }
        let wish = group.download
        let screen = DownloadScreen(form: form, fileCount: plans.count)
        let runner = DownloadRunner(
            plans: plans, group: group, starter: managed ?? SessionDownloads(session: session),
            screen: screen, limits: managed == nil ? (wish.fileLimit, wish.fileLimitPerHost) : nil)
        if let managed { await tellFindings(of: managed, on: screen, form) }
        let warning = managed.map { tellFaults(of: $0, on: screen) }
        // Unstructured: it ends with the session.
        let telling = group.global.isVerbose ? tellEvents(of: session, on: screen, form) : nil
        let status = await runner.run { await Interrupts.next() }
        await managed?.close()
        telling?.cancel()
        warning?.cancel()
        if let name = group.transfer.cookieOutput, let jar = session.configuration.cookies {
            await CookiePlan.write(jar, to: name, group.global)
        }
        await Console.flush()
        return status
    }

    private static func configuration(
        _ group: OptionGroup, _ plans: [DownloadPlan]
    ) async throws(UsageError) -> SessionConfiguration {
        let options = group.transfer
        let usesTLS =
            options.followsRedirects || group.download.stateFolder != nil
            || plans.contains { $0.url.scheme == .https }
        var configuration = try await SessionPlan.configuration(
            for: options, group.global, usesTLS: usesTLS, jar: CookiePlan.makeJar(),
            asJSON: group.global.shownProgress == .json)
        if let rate = group.download.rate { configuration.bandwidth.total.down = .bytesPerSecond(rate) }
        // As browsers have: many files of many segments are to look like no attack.
        configuration.pool.connectionsPerHost = max(6, group.download.segments)
        return configuration
    }

    /// What was found in the directory, where it is worth a word.
    private static func tellFindings(
        of managed: ManagedDownloads, on screen: DownloadScreen, _ form: DownloadForm
    ) async {
        for event in managed.manager.pastEvents {
            switch event {
            case .itemSetAside(let path, let reason):
                await screen.warn("a download of the queue is lost: \(path): \(reason)")
            case .itemLeftAlone(let path, let reason):
                await screen.warn("a download of the queue is left alone: \(path): \(reason)")
            default: break
            }
        }
        if managed.plans.isEmpty, form.tellsPeople { await screen.say("nothing is left to download") }
    }

    /// What cannot be written to the directory, while the downloads go on.
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

    /// `-v`: what the session does, a line each.
    private static func tellEvents(
        of session: HTTPSession, on screen: DownloadScreen, _ form: DownloadForm
    ) -> Task<Void, Never>? {
        guard form.progress != .json else { return nil }
        let events = session.events
        return Task {
            for await event in events {
                await screen.say("* \(ColumnText.safe(event.description, usesUnicode: form.usesUnicode))")
            }
        }
    }
}
