import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Pages of a list", .timeLimit(.minutes(20)))
struct PagesTests {
    /// Returns a page with its number as the text, and a link.
    private static func page(_ number: String, next link: String?) -> OriginResponse {
        .text(number).with {
            guard let link else { return }
            $0.headers.append("Link", "</first>; rel=\"first\", <\(link)>; title=\"a, b\"; rel=\"last next\"")
        }
    }

    /// Responds with three pages, whose links are relative to their own URLs.
    private static let three = OriginHandler { request in
        let number = Int(request.query["page"] ?? "1") ?? 0
        return PagesTests.page("\(number)", next: number < 3 ? "items?per=2&page=\(number + 1)#top" : nil)
    }

    /// The pages at a path of an origin, by a session or a host.
    private static func pages(
        _ path: String, of origin: TestOrigin, ofHost: Bool, query: ParameterValue = .null, maximumCount: Int = 100,
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPPages {
        let session = HTTPSession.own(change)
        return ofHost
            ? try session.host(origin.base).pages(path, query: query, headers: ["X-A": "1"], maximumCount: maximumCount)
            : session.pages(origin.url(path), query: query, headers: ["X-A": "1"], maximumCount: maximumCount)
    }

    @Test(
        "Pages come in order with the fields of the call, each requested when it is asked for",
        arguments: [true, false])
    func follows(ofHost: Bool) async throws {
        try await TestOrigin.withOrigin(handler: Self.three) { origin in
            var texts: [String] = []
            let pages = try Self.pages("/items", of: origin, ofHost: ofHost, query: ["per": 2])
            for try await page in pages {
                texts.append(page.text)
                #expect(origin.requests.count == texts.count)
            }
            #expect(texts == ["1", "2", "3"])
            #expect(
                origin.requests.map(\.target) == ["/items?per=2", "/items?per=2&page=2", "/items?per=2&page=3"])
            #expect(origin.requests.allSatisfy { $0.headers["X-A"] == "1" && $0.method == .get })
            // Each iterator starts with the first page.
            for try await page in pages {
                #expect(page.text == "1")
                break
            }
            #expect(origin.requests.count == 4)
        }
    }

    @Test(
        "A link to an earlier page is an error that carries the page, and ends the sequence",
        arguments: ["/3", "", "#x", "/3#x", "/2", "/1", "/redirected"], [true, false])
    func loops(_ link: String, ofHost: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case "/redirected": .redirect(to: "/1")
            case "/1": Self.page("1", next: "2")
            case "/2": Self.page("2", next: "/3")
            default: Self.page("3", next: link)
            }
        } run: { origin async throws in
            var pages = try Self.pages("/redirected", of: origin, ofHost: ofHost).makeAsyncIterator()
            for text in ["1", "2", "3"] { #expect(try await pages.next()?.text == text) }
            let count = origin.requests.count
            let error = await #expect(throws: HTTPError.self) { try await pages.next() }
            #expect(error?.code == .linkRejected && error?.exchange?.text == "3", "\(String(describing: error))")
            #expect(error?.message.contains("an earlier page") == true && error?.method == .get)
            #expect(origin.requests.count == count)
            #expect(try await pages.next()?.text == nil)
        }
    }

    @Test("A link to another origin is an error, and nothing is sent there", arguments: [true, false])
    func otherOrigin(ofHost: Bool) async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { other in
            try await TestOrigin.withOrigin(handler: .fixed(Self.page("1", next: other.url("/2")))) { origin in
                var pages = try Self.pages("/1", of: origin, ofHost: ofHost).makeAsyncIterator()
                #expect(try await pages.next()?.text == "1")
                let error = await #expect(throws: HTTPError.self) { try await pages.next() }
                #expect(error?.code == .linkRejected && error?.exchange?.text == "1")
                #expect(error?.message.contains(other.url("/2")) == true)
                #expect(other.requests.isEmpty && origin.requests.count == 1)
            }
        }
    }

    @Test("A redirect of the first page to another origin does not take the credentials there either")
    func redirectedOrigin() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(Self.page("1", next: "/2"))) { other in
            try await TestOrigin.withOrigin(handler: .redirect(to: other.url("/1"))) { origin async throws in
                let session = HTTPSession.own()
                var pages = session.pages(origin.url("/"), headers: ["Authorization": "secret"]).makeAsyncIterator()
                #expect(try await pages.next()?.text == "1")
                let error = await #expect(throws: HTTPError.self) { try await pages.next() }
                #expect(error?.code == .linkRejected && other.requests.map { $0.headers["Authorization"] } == [nil])
            }
        }
    }

    @Test("Credentials of the first URL are sent with each page, and those in a link are ignored")
    func userInfo() async throws {
        try await TestOrigin.withOrigin { request in
            Self.page(request.path, next: request.path == "/1" ? "http://x:y@\(request.headers["Host"] ?? "")/2" : nil)
        } run: { origin async throws in
            let first = "http://u:p@127.0.0.1:\(origin.port)/1"
            for try await _ in HTTPSession.own().pages(first) {}
            #expect(origin.requests.map { $0.headers["Authorization"] } == ["Basic dTpw", "Basic dTpw"])
        }
    }

    @Test(
        "More pages than the maximum are an error after the last allowed page, and the first is always allowed",
        arguments: [Int.min, -1, 0, 1, 2, 5], [true, false])
    func maximum(_ maximum: Int, ofHost: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            let number = Int(request.path.dropFirst()) ?? 0
            return Self.page("\(number)", next: "/\(number + 1)")
        } run: { origin async throws in
            var count = 0
            let error = await #expect(throws: HTTPError.self) {
                for try await _ in try Self.pages("/1", of: origin, ofHost: ofHost, maximumCount: maximum) {
                    count += 1
                }
            }
            #expect(error?.code == .linkRejected && error?.message.contains("maximum") == true)
            #expect(count == max(1, maximum) && origin.requests.count == count)
        }
    }

    @Test("A page whose status is not 2xx is an error, so that no list is cut short", arguments: [true, false])
    func statuses(ofHost: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/1" ? Self.page("1", next: "/2") : .text("busy", status: 429)
        } run: { origin async throws in
            var pages = try Self.pages("/1", of: origin, ofHost: ofHost).makeAsyncIterator()
            #expect(try await pages.next()?.text == "1")
            let error = await #expect(throws: HTTPError.self) { try await pages.next() }
            #expect(error?.code == .unacceptableStatus && error?.status == 429 && error?.exchange?.text == "busy")
            #expect(try await pages.next()?.text == nil)
        }
    }

    @Test("A host's mapper receives the errors of pages")
    func mapped() async throws {
        struct Problem: Error, Equatable {
            var code: HTTPError.Code
        }
        try await TestOrigin.withOrigin(handler: .fixed(Self.page("1", next: "/1"))) { origin in
            let api = try HTTPSession.own().host(origin.base) {
                $0.errors = ErrorMapper { Problem(code: $0.code) }
            }
            var pages = api.pages("1").makeAsyncIterator()
            #expect(try await pages.next()?.text == "1")
            await #expect(throws: Problem(code: .linkRejected)) { try await pages.next() }
        }
    }

    @Test("Invalid URLs, and requests with another method than GET, are errors of the first page")
    func invalid() async throws {
        let session = HTTPSession.own()
        let request = try HTTPRequest(method: .post, url: "http://h.test/")
        for (pages, code) in [
            (session.pages("h.test"), HTTPError.Code.invalidURL), (session.pages(request), .invalidRequest),
        ] {
            let error = await #expect(throws: HTTPError.self) { for try await _ in pages {} }
            #expect(error?.code == code)
        }
    }

    @Test("Cancelling the task ends the wait for a page", arguments: [true, false])
    func cancelled(ofHost: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/1" ? Self.page("1", next: "/2") : .text("late").with { $0.fault = OriginFault(.stall) }
        } run: { origin async throws in
            let task = Task {
                var texts: [String] = []
                for try await page in try Self.pages("/1", of: origin, ofHost: ofHost) { texts.append(page.text) }
                return texts
            }
            try await origin.waitForRequests(count: 2)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }
}
