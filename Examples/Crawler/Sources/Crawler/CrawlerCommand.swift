import ArgumentParser
import Dispatch
import Foundation
import Martlet

/// Crawls a website, with cookies and a cache that outlive the program.
@main
struct CrawlerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "crawler",
        abstract: "Read the pages of a website, and print their status.",
        discussion: "Ctrl-C (or SIGTERM) ends the crawl after the running requests.")

    @Argument(help: "The URL of the first page. Only pages of its host are read.")
    var url: String

    @Option(help: "The maximum number of pages.")
    var pages = 100

    @Option(help: "The maximum number of concurrent requests.")
    var concurrency = 4

    @Option(help: "The minimum time between two requests, in milliseconds.")
    var delay = 200

    @Option(help: "The directory of the cookies and the cache. It is created if necessary.")
    var state = ".crawler"

    /// The time that running requests have after a signal.
    private static let gracePeriod = Duration.seconds(10)

    func run() async throws {
        try FileManager.default.createDirectory(
            atPath: state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let cookies = CookieJar(file: "\(state)/cookies", keepsSessionCookies: true)
        let cache = try ResponseCache.at("\(state)/cache", disk: .mebibytes(256))
        var configuration = SessionConfiguration.default
        configuration.userAgent = "\(Crawler.name)/1.0"
        configuration.cookies = cookies
        configuration.cache = cache
        configuration.retry = .transient(maximumAttempts: 3)
        configuration.timeouts.total = .seconds(30)
        let crawler = Crawler(
            start: try HTTPURL(url), session: HTTPSession(configuration: configuration),
            limits: .init(pageCount: pages, concurrency: max(1, concurrency), delay: .milliseconds(delay)))

        await crawl(with: crawler)
        try await cookies.save()
        printError("\(cache.statistics.hits) responses came from the cache")
        if await crawler.isStopping { throw ExitCode(130) }
    }

    /// Runs the crawler until it ends, or until the grace period after a signal is over.
    private func crawl(with crawler: Crawler) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                try? await crawler.run { page in
                    switch page.status {
                    case .success(let status): print(status, page.url)
                    case .failure(let error): printError("\(page.url): \(error)")
                    }
                }
            }
            group.addTask {
                guard await firstSignal(of: [SIGINT, SIGTERM]) != nil else { return }
                await crawler.stop()
                printError("stopping after the running requests")
                try? await Task.sleep(for: Self.gracePeriod)
            }
            await group.next()
            group.cancelAll()
        }
    }
}

/// Waits for one of these signals, which no longer end the process. Returns `nil` when the task is cancelled.
func firstSignal(of numbers: [Int32]) async -> Int32? {
    let (received, continuation) = AsyncStream<Int32>.makeStream()
    let sources = numbers.map { number in
        // The default action would end the process before the source is called.
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number)
        source.setEventHandler { continuation.yield(number) }
        source.activate()
        return source
    }
    defer { for source in sources { source.cancel() } }
    return await received.first { _ in true }
}

func printError(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
