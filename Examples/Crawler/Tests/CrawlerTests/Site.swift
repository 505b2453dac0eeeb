import MartletTesting
import Synchronization

@testable import crawler

/// A website with a cookie, a redirect, a page for members, and rules for crawlers.
struct Site {
    /// Ends when ``releaseSlowPage()`` is called.
    private let gate = AsyncStream<Void>.makeStream()

    /// Lets the responses of `/slow` begin.
    func releaseSlowPage() { gate.continuation.finish() }

    var handler: OriginHandler {
        .router { router in
            router.get("/robots.txt", .fixed(.text("User-agent: *\nDisallow: /private\n")))
            router.get("/") { _ in
                var page = Self.page(
                    "/members", "/moved", "/missing", "/private/diary", "/data.bin", "#top",
                    "https://elsewhere.example.com/", "mailto:sea@example.com")
                page.headers.append("Set-Cookie", "visitor=1; Max-Age=3600")
                return page
            }
            router.get("/members") { request in
                request.headers["Cookie"] == "visitor=1" ? Self.page("/") : .text("no cookie", status: 403)
            }
            router.get("/moved", .redirect(to: "/new", status: 301))
            router.get(
                "/new",
                .fixed(
                    Self.page("/members").with {
                        $0.headers["Content-Type"] = "text/html; charset=unknown"
                        $0.headers.append("Cache-Control", "max-age=3600")
                    }))
            router.get("/data.bin", .fixed(.bytes([0, 1, 2])))
            router.get("/slow") { [gate] _ in
                for await _ in gate.stream {}
                var page = Self.page("/new")
                page.headers.append("Set-Cookie", "visitor=1; Max-Age=3600")
                return page
            }
        }
    }

    private static func page(_ links: String...) -> OriginResponse {
        let text = links.map { #"<a class="link" href="\#($0)">\#($0)</a>"# }.joined(separator: "\n")
        return .text("<!doctype html>\n\(text)", contentType: "text/html; charset=utf-8")
    }
}

/// The pages that a crawler reported.
final class Pages: Sendable {
    private let pages = Mutex<[Crawler.Page]>([])

    /// The status of each page, by its path.
    var statuses: [String: Int] {
        let pages = pages.withLock { $0 }
        return Dictionary(pages.map { ($0.url.path, (try? $0.status.get()) ?? 0) }, uniquingKeysWith: max)
    }

    func append(_ page: Crawler.Page) { pages.withLock { $0.append(page) } }
}
