import Foundation
import Martlet
import MartletTesting
import Testing

@testable import crawler

@Suite("The crawler", .timeLimit(.minutes(1)))
struct CrawlerTests {
    @Test("Each page of the host is read once, with cookies and according to robots.txt")
    func crawling() async throws {
        let site = Site()
        try await TestOrigin.withOrigin(handler: site.handler) { origin in
            var configuration = SessionConfiguration.default
            configuration.cookies = CookieJar()
            let crawler = Crawler(
                start: try HTTPURL(origin.url("/")), session: HTTPSession(configuration: configuration),
                limits: .init(delay: .zero))
            let pages = Pages()
            try await crawler.run { pages.append($0) }
            #expect(
                pages.statuses == [
                    "/": 200, "/members": 200, "/moved": 301, "/new": 200, "/data.bin": 200, "/missing": 404,
                ])
            #expect(origin.requests.filter { $0.target == "/" }.count == 1)
        }
    }

    @Test("No more pages are read than allowed, and none if robots.txt is unavailable")
    func limits() async throws {
        try await TestOrigin.withOrigin(handler: Site().handler) { origin in
            let crawler = Crawler(
                start: try HTTPURL(origin.url("/")), session: HTTPSession(),
                limits: .init(pageCount: 2, delay: .zero))
            let pages = Pages()
            try await crawler.run { pages.append($0) }
            #expect(pages.statuses.count == 2)
        }
        try await TestOrigin.withOrigin(handler: .status(503)) { origin in
            let crawler = Crawler(start: try HTTPURL(origin.url("/")), session: HTTPSession())
            let pages = Pages()
            try await crawler.run { pages.append($0) }
            #expect(pages.statuses.isEmpty)
        }
    }

    @Test("A second run reads fresh pages from the cache")
    func caching() async throws {
        try await withStateDirectory { state in
            try await TestOrigin.withOrigin(handler: Site().handler) { origin in
                let arguments = [origin.url("/"), "--delay", "0", "--state", state]
                let first = try await Program("crawler", arguments).finish()
                #expect(first.exitCode == 0)
                #expect(first.lines.contains("200 \(origin.url("/members"))"))
                let count = origin.requests.filter { $0.target == "/new" }.count
                let second = try await Program("crawler", arguments).finish()
                #expect(second.exitCode == 0)
                #expect(second.lines.contains("200 \(origin.url("/new"))"))
                #expect(origin.requests.filter { $0.target == "/new" }.count == count)
            }
        }
    }

    @Test("SIGTERM lets running requests finish and starts no others")
    func shutdown() async throws {
        try await withStateDirectory { state in
            let site = Site()
            try await TestOrigin.withOrigin(handler: site.handler) { origin in
                let program = try Program(
                    "crawler", [origin.url("/slow"), "--delay", "0", "--state", state])
                // The first request is for robots.txt.
                try await origin.waitForRequests(count: 2)
                program.terminate()
                for await line in program.lines where line.hasPrefix("stopping") { break }
                site.releaseSlowPage()
                let end = await program.finish()
                #expect(end.exitCode == 130)
                #expect(end.lines.contains("200 \(origin.url("/slow"))"))
                #expect(origin.requests.count == 2)
                #expect(FileManager.default.fileExists(atPath: "\(state)/cookies"))
            }
        }
    }

    @Test(
        "The longest matching pattern of robots.txt applies",
        arguments: [
            ("/", true), ("/private/x", false), ("/private/open/x", true), ("/a.pdf", false),
            ("/a.pdf?b", true),
            ("/tmp/1/log", false), ("/tmp/1", true),
        ])
    func robots(path: String, isAllowed: Bool) {
        let text = """
            # Rules for another crawler come first.
            User-agent: other
            Disallow: /

            User-Agent: Martlet-Crawler
            User-agent: third
            Disallow: /private/
            Allow: /private/open/
            Disallow: /*.pdf$
            Disallow: /tmp/*/log
            Crawl-delay: 2
            """
        let robots = Robots(parsing: text, for: Crawler.name)
        #expect(robots.allows(path) == isAllowed)
        #expect(robots.crawlDelay == 2)
    }

    private func withStateDirectory(_ run: (String) async throws -> Void) async throws {
        let directory = NSTemporaryDirectory() + "crawler-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await run(directory)
    }
}
