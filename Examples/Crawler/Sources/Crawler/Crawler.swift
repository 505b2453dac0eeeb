import Martlet

/// A crawler that reads the pages of one host, starting at one of them and following its links.
///
/// Requests are limited in number and in rate, and `robots.txt` is respected. Redirects are treated as links, so that
/// these rules apply to them, too.
actor Crawler {
    struct Limits: Sendable {
        /// The maximum number of pages.
        var pageCount = 100
        /// The maximum number of concurrent requests.
        var concurrency = 4
        /// The minimum time between the starts of two requests, 200 ms by default. A longer one in `robots.txt` applies
        /// instead, up to a minute.
        var delay = Duration.milliseconds(200)
        /// The maximum size of a page.
        var pageSize = ByteCount.mebibytes(2)
    }

    /// A page, and the result of requesting it.
    struct Page: Sendable {
        var url: HTTPURL
        var status: Result<Int, any Error>
        /// The links as they are in the page.
        var links: [String] = []
    }

    static let name = "martlet-crawler"

    private let start: HTTPURL
    private let session: HTTPSession
    private let limits: Limits
    private var queue: [HTTPURL] = []
    private var knownURLs: Set<String> = []
    private var robots = Robots.allowAll
    /// Whether no further page is requested.
    private(set) var isStopping = false

    init(start: HTTPURL, session: HTTPSession, limits: Limits = Limits()) {
        self.start = start
        self.session = session
        self.limits = limits
    }

    /// Ends the crawl after the requests that are running.
    func stop() { isStopping = true }

    /// Reads pages until none is left, the limit is reached, or the crawler is stopped.
    /// - Parameter report: Receives each page.
    /// - Throws: `CancellationError`.
    func run(_ report: @Sendable (Page) -> Void) async throws {
        robots = await loadRobots()
        let delay = max(limits.delay, .seconds(min(robots.crawlDelay ?? 0, 60)))
        enqueue(start)
        await withTaskGroup(of: Page.self) { group in
            var requestCount = 0
            var runningCount = 0
            while true {
                while !isStopping, !queue.isEmpty, requestCount < limits.pageCount,
                    runningCount < limits.concurrency
                {
                    if requestCount > 0 { try? await Task.sleep(for: delay) }
                    // The crawler may have been stopped during the wait.
                    if isStopping || Task.isCancelled { break }
                    let url = queue.removeFirst()
                    group.addTask { await self.load(url) }
                    requestCount += 1
                    runningCount += 1
                }
                guard let page = await group.next() else { break }
                runningCount -= 1
                report(page)
                for link in page.links { if let url = try? page.url.resolving(link) { enqueue(url) } }
            }
        }
        try Task.checkCancellation()
    }

    /// Adds a page of the host to the queue, once.
    private func enqueue(_ url: HTTPURL) {
        // URLs that differ in their fragments are one page.
        guard url.origin == start.origin, robots.allows(url.requestTarget),
            knownURLs.insert(url.absoluteForm).inserted
        else { return }
        queue.append(url)
    }

    private nonisolated func load(_ url: HTTPURL) async -> Page {
        do {
            return try await session.stream(
                url, headers: ["Accept": "text/html, */*;q=0.1"],
                options: .init { $0.redirects = .doNotFollow }
            ) { response, body in
                var page = Page(url: url, status: .success(response.status.code))
                if response.status.kind == .redirection, let location = response.headers[.location] {
                    page.links = [location]
                } else if response.status.kind == .successful, response.contentType?.essence == "text/html" {
                    // An unknown charset is no error: links are almost always ASCII.
                    let text = String(decoding: try await body.collect(upTo: limits.pageSize), as: UTF8.self)
                    page.links = HTMLLinks(in: text).targets
                }
                return page
            }
        } catch {
            return Page(url: url, status: .failure(error))
        }
    }

    /// Returns the rules of the site. As RFC 9309 requires, all pages are allowed if there are no rules, and no page if
    /// the server fails.
    private func loadRobots() async -> Robots {
        do {
            let exchange = try await session.get(try start.resolving("/robots.txt"))
            return switch exchange.statusCode {
            case 200..<300: Robots(parsing: exchange.text, for: Self.name)
            case 400..<500: .allowAll
            default: .disallowAll
            }
        } catch {
            return .disallowAll
        }
    }
}
