import Martlet
import MartletTesting
import Testing

@Suite("Links of responses (RFC 8288)", .timeLimit(.minutes(20)))
struct LinkFieldTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let fields: [String]
        /// The relations and the target of each link, as `next /a?page=2`.
        let links: [String]

        var testDescription: String { fields.joined(separator: " | ") }
    }

    static let rows: [Row] = [
        Row(
            fields: [#"</a?page=2>; rel="next", </a?page=9>; rel="last""#],
            links: ["next http://h/a?page=2", "last http://h/a?page=9"]),
        Row(
            fields: [#"<b>; rel=prev"#, #"<http://other/c>; rel=next"#],
            links: ["prev http://h/dir/b", "next http://other/c"]),
        Row(
            fields: [#"</a,b>; rel="next"; title="one, \"two\"; three", </c>"#],
            links: ["next http://h/a,b", " http://h/c"]),
        Row(fields: [#"</a>;rel="NEXT start";REL=prev"#], links: ["next start http://h/a"]),
        Row(fields: [#" </a> ; rel = "next""#], links: ["next http://h/a"]),
        Row(
            fields: [#"</a>; rel=next; anchor="/b""#, "", ",,", "no link; rel=next", "<unclosed; rel=next"], links: []),
        Row(fields: [#"<mailto:a@b>; rel=next, </d>; rel=next"#], links: ["next http://h/d"]),
        Row(fields: [#"</a>; rel="next"#, #"</b>; rel=next"#], links: [" http://h/a", "next http://h/b"]),
        Row(fields: ["<>; rel=self"], links: ["self http://h/dir/page"]),
    ]

    @Test("Targets are resolved, relations are lowercased, and malformed links are skipped", arguments: rows)
    func links(_ row: Row) throws {
        let base = try HTTPURL("http://h/dir/page")
        let links = HTTPLink.links(in: row.fields, base: base)
        #expect(links.map { "\($0.relations.joined(separator: " ")) \($0.url)" } == row.links)
    }

    @Test("At a long URL, the number of links is limited, but each relation is found")
    func longBase() throws {
        let base = try HTTPURL("http://h/\(String(repeating: "d", count: 60_000))/")
        let fields = [String(repeating: "<a>,", count: 2000), "</b>; rel=next"]
        #expect(HTTPLink.links(in: fields, base: base).count == (1 << 20) / base.absoluteForm.utf8.count)
        let next = HTTPLink.links(in: fields, base: base, relation: "NEXT")
        #expect(next.map(\.url.absoluteString) == ["http://h/b"])
        let short = try HTTPURL("http://h/")
        #expect(HTTPLink.links(in: fields, base: short).count == 2001)
    }

    @Test("A list is followed page by page")
    func pages() async throws {
        try await TestOrigin.withOrigin { request in
            let page = Int(request.target.split(separator: "=").last ?? "") ?? 1
            let next: OriginFields = page < 3 ? ["Link": #"</list?page=\#(page + 1)>; rel="next"; title="more""#] : [:]
            return OriginResponse(headers: next, body: .text("\(page)"))
        } run: { origin async throws in
            let session = HTTPSession.own()
            var url: HTTPURL? = try HTTPURL(origin.url("/list?page=1"))
            var pages: [String] = []
            while let present = url {
                let page = try await session.get(present)
                pages.append(page.text)
                #expect(page.links.first?.parameters["title"] == (page.link("next") == nil ? nil : "more"))
                url = page.link("NEXT")
            }
            #expect(pages == ["1", "2", "3"])
        }
    }
}
