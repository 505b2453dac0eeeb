import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Login page instead of the file")
struct CaptivePortalTests {
    /// A captive portal between the file and the client.
    struct Portal: Sendable, CustomTestStringConvertible {
        let name: String
        let acts: [RangeResponseOverride]
        /// The error after the last retry: of its pages, or of its broken transfers.
        var code: HTTPError.Code

        var testDescription: String { name }
    }

    private static func page(_ change: @escaping @Sendable (inout OriginResponse) -> Void = { _ in })
        -> RangeResponseOverride
    {
        RangeResponseOverride(on: { _ in true }) { answer in
            var page = OriginResponse.text("<html>log in</html>\n")
            page.headers["Content-Type"] = "text/html"
            change(&page)
            answer.replacement = page
        }
    }

    /// Changes the first response, to a request for missing bytes; login pages follow it.
    private static func behind(_ change: @escaping @Sendable (inout RangeResponse) -> Void)
        -> [RangeResponseOverride]
    {
        [
            RangeResponseOverride(on: { $0.number > 1 }) { $0.replacement = .text("<html>log in</html>\n") },
            .onRequest(1, change),
        ]
    }

    private static func stub(_ tag: String) -> RangeResponseOverride {
        RangeResponseOverride(on: { $0.number == 1 }) { answer in
            answer.status = 200
            answer.fields["Content-Range"] = nil
            answer.fields["ETag"] = tag
            answer.body = 0..<300_000
            answer.fault = OriginFault(.close, afterBodyBytes: 50_000)
        }
    }

    static let portals: [Portal] = [
        Portal(name: "a page without a validator", acts: [page()], code: .representationChanged),
        Portal(
            name: "a page that must not be stored",
            acts: [page { $0.headers["Cache-Control"] = "no-store" }],
            code: .representationChanged),
        Portal(
            name: "a page with only a date",
            acts: [page { $0.headers["Last-Modified"] = "Tue, 15 Nov 1994 12:00:00 GMT" }],
            code: .representationChanged),
        Portal(
            name: "a page with a content coding", acts: [page { $0.headers["Content-Encoding"] = "x-portal" }],
            code: .representationChanged),
        Portal(
            name: "a redirect to a page",
            acts: [
                page(),
                RangeResponseOverride(on: { $0.target != "/login" }) {
                    $0.replacement = .redirect(to: "/login")
                },
            ], code: .representationChanged),
        Portal(
            name: "a cut page with another tag, then errors",
            acts: [stub("\"portal\""), .answer(from: 2, .text("no\n", status: 404))],
            code: .unacceptableStatus),
        Portal(
            name: "a page after a 416", acts: behind { $0.replacement = .text("no\n", status: 416) },
            code: .representationChanged),
        Portal(
            name: "a page after another range",
            acts: behind { $0.fields["Content-Range"] = "bytes 0-4/300000" }, code: .representationChanged),
        Portal(
            name: "a page after a range of a file of another length",
            acts: behind { $0.fields["Content-Range"] = "bytes \(Samples.cut)-299998/299999" },
            code: .representationChanged),
        Portal(
            name: "a page after a range of another version",
            acts: behind { $0.fields["ETag"] = "\"another\"" }, code: .representationChanged),
    ]

    @Test(
        "Stored bytes of earlier runs survive the portal, and the rest is fetched after it",
        arguments: portals)
    func survives(_ portal: Portal) async throws {
        try await RangeScene.with(Samples.cutOnce()) { scene in
            var options = RangeScene.options
            options.retry.maximumRetries = 0
            let first = try await scene.run(options)
            #expect(first.error?.resumableByteCount == Samples.cut, "\(first.log)")

            options.retry.maximumRetries = 2
            scene.ranges.play(RangeBehavior(Samples.one, acts: portal.acts))
            let run = try await scene.run(options)
            #expect(run.error?.code == portal.code, "\(run.log)")
            #expect(run.error?.resumableByteCount == Samples.cut, "\(run.log)")
            let names = try scene.directory.names()
            #expect(names.count == 2, "\(names)")
            try await scene.expectOrder(after: run, versions: [Samples.one])

            scene.ranges.play(RangeBehavior(Samples.one))
            let last = try await scene.run(options)
            #expect(last.value?.resumedByteCount == Samples.cut, "\(last.log)")
            #expect(last.requests.map(\.start) == [Samples.cut], "\(last.log)")
            try await scene.expectOrder(after: last, versions: [Samples.one])
        }
    }

    @Test("A login page that disappears is one transient failure")
    func passes() async throws {
        try await RangeScene.with(Samples.cutOnce()) { scene in
            var options = RangeScene.options
            options.retry.maximumRetries = 0
            _ = try await scene.run(options)
            options.retry.maximumRetries = 2
            scene.ranges.play(
                RangeBehavior(
                    Samples.one, acts: [.answer(from: 1, through: 2, .text("<html>log in</html>"))]))
            let run = try await scene.run(options)
            #expect(run.value?.resumedByteCount == Samples.cut && run.restarts.isEmpty, "\(run.log)")
            #expect(run.retries.count == 2)
            try await scene.expectOrder(after: run, versions: [Samples.one])
        }
    }

    @Test(
        "A new version that is cut keeps the stored bytes until it has more of them"
    )
    func newState() async throws {
        for (count, kept) in [(50_000, Samples.cut), (200_000, 200_000)] as [(UInt64, UInt64)] {
            try await RangeScene.with(Samples.cutOnce()) { scene in
                var options = RangeScene.options
                options.retry.maximumRetries = 0
                _ = try await scene.run(options)
                scene.ranges.play(RangeBehavior(Samples.two, acts: [.cut(request: 1, after: count)]))
                let cut = try await scene.run(options)
                #expect(cut.restarts == [.changed] && cut.error?.resumableByteCount == kept, "\(cut.log)")
                scene.ranges.play(RangeBehavior(Samples.two))
                let last = try await scene.run(options)
                #expect(last.value != nil && last.requests.first?.start == kept, "\(last.log)")
                try await scene.expectOrder(after: last, versions: [Samples.two])
            }
        }
    }
}
