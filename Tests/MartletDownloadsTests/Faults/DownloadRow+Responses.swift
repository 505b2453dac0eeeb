import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension DownloadRow {
    private static let one = Samples.one
    private static let two = Samples.two
    private static let cut = Samples.cut

    /// Rows about statuses, codings and lengths.
    static let answers: [DownloadRow] = ignored + encoded + unsatisfiable + rejected + lengths

    // MARK: Ignored ranges

    private static let ignored: [DownloadRow] = [
        DownloadRow(
            "N2", "a server without ranges gets one request, for the first range",
            RangeBehavior(one).with { $0.ranges = .ignored }, .complete(0),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
                #expect(run.requests.first?.range == "bytes=0-8388607")
                #expect(run.requests.first?.ifRange == nil)
                #expect(run.value?.receivedByteCount == one.byteCount)
            }),
        DownloadRow(
            "N2", "a large file of a server without ranges arrives in one stream",
            RangeBehavior(RangeVersion(9_500_000, entityTag: "\"large\"")).with { $0.ranges = .ignored },
            .complete(0),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
            }),
        DownloadRow(
            "N2", "a cut response without ranges is requested again, and never appended to",
            Samples.cutOnce().with { $0.ranges = .ignored }, .complete(0),
            audit: { run in
                #expect(run.requests.count == 2, "\(run.log)")
                #expect(run.requests.last?.status == 200)
            }),
        DownloadRow(
            "N2", "a whole new version in response to a resumption is used",
            earlier: Samples.cutOnce(), keeps: cut, RangeBehavior(two), .complete(0),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
                #expect(run.requests.first?.start == cut)
                #expect(run.requests.first?.ifRange == "\"one\"")
                #expect(run.restarts == [.changed])
            }),
        DownloadRow(
            "N2", "a 200 of the same version to If-Range leads to a request without it",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one).with { $0.ranges = .ignoredWithIfRange }, .complete(0),
            audit: { run in
                #expect(run.requests.count == 2, "\(run.log)")
                #expect(run.requests.first?.ifRange == "\"one\"")
                #expect(run.requests.last?.ifRange == nil)
                #expect(run.requests.last?.start == cut)
                #expect(run.value?.resumedByteCount == cut)
            }),
        DownloadRow(
            "N2", "without If-Range a range of another version is rejected",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, Samples.sameLength).with {
                $0.ranges = .ignoredWithIfRange
                $0.flips = [.afterRequests(1)]
            }, .complete(1)),
    ]

    // MARK: Codings

    private static let encoded: [DownloadRow] = [
        DownloadRow(
            "N8", "a range that is compressed despite identity is rejected, and the whole file is fetched",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, acts: [.onRanges { $0.fields["Content-Encoding"] = "gzip" }]), .complete(0),
            audit: { run in
                #expect(run.requests.last?.range == nil, "\(run.log)")
            }),
        DownloadRow(
            "N8", "a first range that is compressed despite identity is rejected",
            RangeBehavior(one, acts: [.onRanges { $0.fields["Content-Encoding"] = "gzip" }]), .complete(0)),
    ]

    // MARK: 416 and other rejections

    /// All bytes arrived, but not the end of the body: the client cannot know yet that it is complete.
    private static let endless = RangeBehavior(one, acts: [.cut(request: 1, after: one.byteCount)]).with {
        $0.ranges = .ignored
        $0.framing = .chunked(size: nil)
    }

    private static let unsatisfiable: [DownloadRow] = [
        DownloadRow(
            "N9", "416 with the stored length completes the file",
            earlier: endless, keeps: one.byteCount, RangeBehavior(one), .complete(0),
            change: { $0.segments = 1 },
            audit: { run in
                #expect(run.requests.first?.start == one.byteCount, "\(run.log)")
                #expect(run.sentByteCount == 0, "\(run.log)")
            }),
        DownloadRow(
            "N9", "416 of a file that became shorter fetches the new file",
            earlier: endless, keeps: one.byteCount,
            RangeBehavior(RangeVersion(1_000, place: 77, entityTag: "\"short\"")).with {
                $0.heedsIfRange = false
            }, .complete(0), change: { $0.segments = 1 }),
        DownloadRow(
            "N9", "416 with the same length and another entity tag fetches the new file",
            earlier: endless, keeps: one.byteCount,
            RangeBehavior(Samples.sameLength).with { $0.heedsIfRange = false }, .complete(0),
            change: { $0.segments = 1 }),
        DownloadRow(
            "N10", "416 without Content-Range to a resumption restarts once",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(
                one,
                acts: [
                    .onResumptions {
                        $0.status = 416
                        $0.fields["Content-Range"] = nil
                        $0.body = 0..<0
                    }
                ]), .complete(0),
            audit: { run in
                #expect(run.requests.count <= 3, "\(run.log)")
            }),
        DownloadRow(
            "N10", "416 to everything is an error",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, acts: [.answer(from: 1, OriginResponse(416))]),
            .fails([.rangeRejected, .unacceptableStatus], saying: ["416"]),
            audit: { run in
                #expect(run.requests.count <= 4, "\(run.log)")
            }),
        DownloadRow(
            "N9", "an empty file is complete without any range",
            RangeBehavior(RangeVersion(0, entityTag: "\"empty\"")), .complete(0)),
        DownloadRow(
            "N9", "an empty file of a server without ranges is complete",
            RangeBehavior(RangeVersion(0)).with { $0.ranges = .ignored }, .complete(0)),
        DownloadRow(
            "N9", "a file of one byte is complete",
            RangeBehavior(RangeVersion(1, entityTag: "\"byte\"")), .complete(0)),
    ]

    private static func rejection(_ status: Int, keeps: Bool) -> DownloadRow {
        DownloadRow(
            "N10", "\(status) to a resumption fails, and says what was requested\(keeps ? " and stored" : "")",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, acts: [.answer(from: 1, .text("no\n", status: status))]),
            .fails([.unacceptableStatus], saying: ["\(status)", "\(cut)-"]),
            change: { $0.retry.maximumRetries = 2 },
            audit: { run in
                if keeps { #expect(run.error?.resumableByteCount == cut, "\(run.log)") }
            })
    }

    private static let rejected: [DownloadRow] = [
        rejection(403, keeps: true), rejection(404, keeps: false), rejection(410, keeps: false),
        rejection(500, keeps: true), rejection(503, keeps: true),
        DownloadRow(
            "N10", "404 to the first request is an error that leaves no file",
            RangeBehavior(one, acts: [.answer(from: 1, .text("no\n", status: 404))]),
            .fails([.unacceptableStatus], saying: ["404"]),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
            }),
        DownloadRow(
            "N10", "204 is an error",
            RangeBehavior(one, acts: [.answer(from: 1, OriginResponse(204))]),
            .fails([.unacceptableStatus, .rangeRejected])),
        DownloadRow(
            "N11", "503 is retried as often as the settings allow",
            RangeBehavior(one, acts: [.answer(from: 1, .text("busy\n", status: 503))]),
            .fails([.unacceptableStatus], saying: ["503"]), change: { $0.retry.maximumRetries = 3 },
            audit: { run in
                #expect(run.requests.count == 4, "\(run.log)")
                #expect(run.retries.count == 3)
            }),
        DownloadRow(
            "N11", "429 and 503 are transient",
            RangeBehavior(
                one,
                acts: [
                    .answer(from: 1, through: 2, .text("busy\n", status: 503)),
                    .answer(from: 3, through: 3, .text("slow\n", status: 429)),
                ]), .complete(0),
            audit: { run in
                #expect(run.requests.count == 4, "\(run.log)")
            }),
    ]

    // MARK: Lengths

    private static let lengths: [DownloadRow] = [
        DownloadRow(
            "N15", "a length beyond any disk is an error, and takes no space",
            RangeBehavior(
                RangeVersion(1 << 20, entityTag: "\"vast\""),
                acts: [
                    .always {
                        $0.status = 206
                        $0.body = 0..<(1 << 20)
                        $0.fields["Content-Range"] = "bytes 0-1048575/9007199254740993000"
                    },
                    .answer(from: 2, .text("gone\n", status: 404)),
                ]), .fails([.diskFull, .fileFailed, .unacceptableStatus, .rangeRejected, .bodyTooLarge])),
        DownloadRow(
            "N15", "a file above the limit is rejected before it is fetched",
            RangeBehavior(RangeVersion(20_000_000, entityTag: "\"big\"")), .fails([.bodyTooLarge]),
            recovers: false, change: { $0.byteLimit = .mebibytes(10) },
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
            }),
        DownloadRow(
            "N15", "a body above the limit that has no length ends at the limit",
            RangeBehavior(RangeVersion(3_000_000)).with {
                $0.ranges = .ignored
                $0.framing = .chunked(size: nil)
            }, .fails([.bodyTooLarge]), recovers: false, change: { $0.byteLimit = .mebibytes(1) }),
        DownloadRow(
            "N15", "a Content-Length that Content-Range contradicts is rejected",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(
                one,
                acts: [
                    .onResumptions {
                        $0.declaredByteCount = 1_000
                        $0.body = $0.body.lowerBound..<$0.body.lowerBound + 1_000
                    }
                ]), .complete(0)),
        DownloadRow(
            "N21", "bytes after the announced length are discarded",
            RangeBehavior(one, acts: [.always { $0.surplus = 5_000 }]), .complete(0),
            audit: { run in
                #expect(run.value?.byteCount == one.byteCount)
            }),
        DownloadRow(
            "N21", "bytes after the announced length of a resumption are discarded",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, acts: [.onResumptions { $0.surplus = 5_000 }]), .complete(0)),
        DownloadRow(
            "N21", "the excess of a body longer than its Content-Range is not written",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(
                one,
                acts: [
                    .onResumptions {
                        $0.surplus = 5_000
                        $0.declaredByteCount = UInt64($0.body.count) + 5_000
                    }
                ]), .complete(0)),
        DownloadRow(
            "N21", "the excess of a chunked body longer than its Content-Range is not written",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, acts: [.onResumptions { $0.surplus = 5_000 }]).with {
                $0.framing = .chunked(size: 700)
            }, .complete(0)),
    ]
}
