import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension DownloadRow {
    private static let one = Samples.one
    private static let two = Samples.two
    private static let cut = Samples.cut

    /// N2, N8, N9, N10, N15, N21: statuses, codings and lengths.
    static let answers: [DownloadRow] = ignored + encoded + unsatisfiable + refused + lengths

    // MARK: N2, ranges are ignored

    private static let ignored: [DownloadRow] = [
        DownloadRow(
            "N2", "a server without ranges gets one request, for the first part",
            RangeBehavior(one).with { $0.ranges = .ignored }, .complete(0),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
                #expect(run.requests.first?.range == "bytes=0-8388607")
                #expect(run.requests.first?.ifRange == nil)
                #expect(run.value?.receivedByteCount == one.byteCount)
            }),
        DownloadRow(
            "N2", "a large file of a server without ranges comes in one stream",
            RangeBehavior(RangeVersion(9_500_000, entityTag: "\"large\"")).with { $0.ranges = .ignored },
            .complete(0),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
            }),
        DownloadRow(
            "N2", "a cut answer of a server without ranges is asked for anew, and never appended to",
            Samples.cutOnce().with { $0.ranges = .ignored }, .complete(0),
            audit: { run in
                #expect(run.requests.count == 2, "\(run.log)")
                #expect(run.requests.last?.status == 200)
            }),
        DownloadRow(
            "N2", "the whole of a new version, in answer to a resumption, is used as it comes",
            earlier: Samples.cutOnce(), keeps: cut, RangeBehavior(two), .complete(0),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
                #expect(run.requests.first?.start == cut)
                #expect(run.requests.first?.ifRange == "\"one\"")
                #expect(run.restarts == [.changed])
            }),
        DownloadRow(
            "N2", "a cache that answers If-Range with the whole of the same version is asked without it",
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
            "N2", "without If-Range the part of another version is refused",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, Samples.sameLength).with {
                $0.ranges = .ignoredWithIfRange
                $0.flips = [.afterRequests(1)]
            }, .complete(1)),
    ]

    // MARK: N8, codings

    private static let encoded: [DownloadRow] = [
        DownloadRow(
            "N8", "a part that is compressed despite identity is refused, and the file fetched as a whole",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, acts: [.onRanges { $0.fields["Content-Encoding"] = "gzip" }]), .complete(0),
            audit: { run in
                #expect(run.requests.last?.range == nil, "\(run.log)")
            }),
        DownloadRow(
            "N8", "a first part that is compressed despite identity is refused",
            RangeBehavior(one, acts: [.onRanges { $0.fields["Content-Encoding"] = "gzip" }]), .complete(0)),
    ]

    // MARK: N9, N10: 416 and other refusals

    /// All bytes came, but not the end of the body: nobody knows yet that they are all.
    private static let endless = RangeBehavior(one, acts: [.cut(request: 1, after: one.byteCount)]).with {
        $0.ranges = .ignored
        $0.framing = .chunked(size: nil)
    }

    private static let unsatisfiable: [DownloadRow] = [
        DownloadRow(
            "N9", "416 with the length that is there completes the file",
            earlier: endless, keeps: one.byteCount, RangeBehavior(one), .complete(0),
            change: { $0.segments = 1 },
            audit: { run in
                #expect(run.requests.first?.start == one.byteCount, "\(run.log)")
                #expect(run.sentByteCount == 0, "\(run.log)")
            }),
        DownloadRow(
            "N9", "416 of a file that has become shorter fetches that one",
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
            "N10", "416 without Content-Range to a resumption begins anew, once",
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
            .fails([.rangeRefused, .unacceptableStatus], saying: ["416"]),
            audit: { run in
                #expect(run.requests.count <= 4, "\(run.log)")
            }),
        DownloadRow(
            "N9", "an empty file is complete, though no range of it can be had",
            RangeBehavior(RangeVersion(0, entityTag: "\"empty\"")), .complete(0)),
        DownloadRow(
            "N9", "an empty file of a server without ranges is complete",
            RangeBehavior(RangeVersion(0)).with { $0.ranges = .ignored }, .complete(0)),
        DownloadRow(
            "N9", "a file of one byte is complete",
            RangeBehavior(RangeVersion(1, entityTag: "\"byte\"")), .complete(0)),
    ]

    private static func refusal(_ status: Int, keeps: Bool) -> DownloadRow {
        DownloadRow(
            "N10", "\(status) to a resumption fails, and says what was asked\(keeps ? " and kept" : "")",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, acts: [.answer(from: 1, .text("no\n", status: status))]),
            .fails([.unacceptableStatus], saying: ["\(status)", "\(cut)-"]),
            change: { $0.retry.maximumAttempts = 2 },
            audit: { run in
                if keeps { #expect(run.error?.resumableByteCount == cut, "\(run.log)") }
            })
    }

    private static let refused: [DownloadRow] = [
        refusal(403, keeps: true), refusal(404, keeps: false), refusal(410, keeps: false),
        refusal(500, keeps: true), refusal(503, keeps: true),
        DownloadRow(
            "N10", "404 to the first request is an error that leaves nothing",
            RangeBehavior(one, acts: [.answer(from: 1, .text("no\n", status: 404))]),
            .fails([.unacceptableStatus], saying: ["404"]),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
            }),
        DownloadRow(
            "N10", "204 is no file",
            RangeBehavior(one, acts: [.answer(from: 1, OriginResponse(204))]),
            .fails([.unacceptableStatus, .rangeRefused])),
        DownloadRow(
            "N11", "503 is borne as often as the settings say",
            RangeBehavior(one, acts: [.answer(from: 1, .text("busy\n", status: 503))]),
            .fails([.unacceptableStatus], saying: ["503"]), change: { $0.retry.maximumAttempts = 3 },
            audit: { run in
                #expect(run.requests.count == 4, "\(run.log)")
                #expect(run.retries.count == 3)
            }),
        DownloadRow(
            "N11", "429 and 503 pass",
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

    // MARK: N15, N21: lengths

    private static let lengths: [DownloadRow] = [
        DownloadRow(
            "N15", "a length that no disk holds is an error, and takes no room",
            RangeBehavior(
                RangeVersion(1 << 20, entityTag: "\"vast\""),
                acts: [
                    .always {
                        $0.status = 206
                        $0.body = 0..<(1 << 20)
                        $0.fields["Content-Range"] = "bytes 0-1048575/9007199254740993000"
                    },
                    .answer(from: 2, .text("gone\n", status: 404)),
                ]), .fails([.diskFull, .fileFailed, .unacceptableStatus, .rangeRefused, .bodyTooLarge])),
        DownloadRow(
            "N15", "a file above the limit is refused before it is fetched",
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
            "N15", "a Content-Length that Content-Range contradicts is refused",
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
            "N21", "bytes behind the promised ones are dropped",
            RangeBehavior(one, acts: [.always { $0.surplus = 5_000 }]), .complete(0),
            audit: { run in
                #expect(run.value?.byteCount == one.byteCount)
            }),
        DownloadRow(
            "N21", "bytes behind the promised ones of a resumption are dropped",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, acts: [.onResumptions { $0.surplus = 5_000 }]), .complete(0)),
        DownloadRow(
            "N21", "a longer body than Content-Range says is not written",
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
            "N21", "a longer chunked body than Content-Range says is not written",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(one, acts: [.onResumptions { $0.surplus = 5_000 }]).with {
                $0.framing = .chunked(size: 700)
            }, .complete(0)),
    ]
}
