import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension DownloadRow {
    private static let one = Samples.one
    private static let cut = Samples.cut

    /// Rows about versions of a file and their validators.
    static let versions: [DownloadRow] = changes + weak + bare + unverified

    // MARK: Changed versions

    private static let changes: [DownloadRow] = [
        DownloadRow(
            "N5", "a file that changes after a cut is fetched again",
            RangeBehavior(one, Samples.two, acts: [.cut(request: 1, after: cut)]).with {
                $0.flips = [.afterRequests(1)]
            }, .complete(1),
            audit: { run in
                #expect(run.requests.count == 2, "\(run.log)")
                #expect(run.requests.last?.ifRange == "\"one\"")
                #expect(run.restarts == [.changed])
            }),
        DownloadRow(
            "N5", "a range with another entity tag, from a server that ignores If-Range, is not mixed in",
            RangeBehavior(one, Samples.sameLength, acts: [.cut(request: 1, after: cut)]).with {
                $0.flips = [.afterRequests(1)]
                $0.heedsIfRange = false
            }, .complete(1)),
        DownloadRow(
            "N5", "a range with another entity tag and length is not mixed in",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(Samples.two).with { $0.heedsIfRange = false }, .complete(0)),
        DownloadRow(
            "N5", "a range without its former entity tag is not mixed in",
            earlier: Samples.cutOnce(), keeps: cut,
            RangeBehavior(Samples.bare(Samples.sameLength)).with { $0.heedsIfRange = false }, .complete(0)),
        DownloadRow(
            "N5", "a file that always changes fails the download",
            RangeBehavior(
                one, Samples.two, RangeVersion(320_000, place: 3, entityTag: "\"three\""),
                RangeVersion(330_000, place: 44, entityTag: "\"four\""),
                RangeVersion(340_000, place: 555, entityTag: "\"five\""),
                RangeVersion(350_000, place: 6_666, entityTag: "\"six\""),
                acts: [
                    RangeResponseOverride(on: { $0.number < 100 }) {
                        $0.fault = OriginFault(.close, afterBodyBytes: 50_000)
                    }
                ]
            ).with { conduct in conduct.flips = (1...5).map { .afterRequests($0) } },
            .fails([.representationChanged]),
            audit: { run in
                #expect(run.requests.count <= 5, "\(run.log)")
                #expect(run.restarts.count <= 3)
            }),
        DownloadRow(
            "N5", "segments of two versions are never mixed",
            RangeBehavior(
                RangeVersion(20 << 20, entityTag: "\"one\""),
                RangeVersion(20 << 20, place: 31, entityTag: "\"two\"")
            ).with { $0.flips = [.afterRequests(2)] }, .completeAny),
        DownloadRow(
            "N5", "segments of two versions are never mixed, even if the server ignores If-Range",
            RangeBehavior(
                RangeVersion(20 << 20, entityTag: "\"one\""),
                RangeVersion(20 << 20, place: 31, entityTag: "\"two\"")
            ).with {
                $0.flips = [.afterRequests(1)]
                $0.heedsIfRange = false
            }, .complete(1)),
    ]

    // MARK: Weak validators

    private static func restartedGeneration(_ run: RangeRun) {
        #expect(run.requests.allSatisfy { $0.ifRange == nil }, "\(run.log)")
        #expect(run.requests.first?.isResumption == false, "\(run.log)")
        #expect(run.value?.resumedByteCount == 0)
    }

    private static let weak: [DownloadRow] = [
        DownloadRow(
            "N6", "a file with a weak entity tag is fetched again",
            earlier: Samples.cutOnce(Samples.weak(one)), RangeBehavior(Samples.weak(one)), .complete(0),
            audit: restartedGeneration),
        DownloadRow(
            "N6", "a date well before that of the response is sent in If-Range",
            earlier: Samples.cutOnce(Samples.dated(one, before: 86_400)).with { $0.date = Samples.date },
            keeps: cut,
            RangeBehavior(Samples.dated(one, before: 86_400)).with { $0.date = Samples.date + 10 },
            .complete(0),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
                #expect(run.requests.first?.ifRange == RangeBehavior.date(Samples.date - 86_400))
                #expect(run.requests.first?.start == cut)
                #expect(run.value?.resumedByteCount == cut)
            }),
        DownloadRow(
            "N6", "a file with a newer date is fetched again",
            earlier: Samples.cutOnce(Samples.dated(one, before: 86_400)).with { $0.date = Samples.date },
            keeps: cut,
            RangeBehavior(Samples.dated(Samples.sameLength, before: 80_000)).with { $0.date = Samples.date },
            .complete(0)),
        DownloadRow(
            "N6", "a file with a date 30 s before that of the response is fetched again",
            earlier: Samples.cutOnce(Samples.dated(one, before: 30)).with { $0.date = Samples.date },
            RangeBehavior(Samples.dated(one, before: 30)).with { $0.date = Samples.date + 5 }, .complete(0),
            audit: restartedGeneration),
        DownloadRow(
            "N6", "a file with a date after that of the response is fetched again",
            earlier: Samples.cutOnce(Samples.dated(one, before: -500)).with { $0.date = Samples.date },
            RangeBehavior(Samples.dated(one, before: -500)).with { $0.date = Samples.date }, .complete(0),
            audit: restartedGeneration),
        DownloadRow(
            "N6", "a large file with a weak entity tag arrives in one stream",
            RangeBehavior(Samples.weak(RangeVersion(12 << 20, entityTag: "\"large\""))), .complete(0),
            audit: { run in
                #expect(run.requests.allSatisfy { !$0.isResumption }, "\(run.log)")
            }),
        DownloadRow(
            "N6", "a large file whose weak entity tag changes is never mixed",
            RangeBehavior(
                Samples.weak(RangeVersion(12 << 20, entityTag: "\"one\"")),
                Samples.weak(RangeVersion(12 << 20, place: 31, entityTag: "\"two\""))
            ).with { $0.flips = [.afterRequests(1)] }, .completeAny),
    ]

    // MARK: Missing validators

    private static let bare: [DownloadRow] = [
        DownloadRow(
            "N7", "a file without a validator is fetched again",
            earlier: Samples.cutOnce(Samples.bare(one)), RangeBehavior(Samples.bare(one)), .complete(0),
            audit: restartedGeneration),
        DownloadRow(
            "N7",
            "a cut response without a validator is requested again in the same run, and never appended to",
            RangeBehavior(
                Samples.bare(one), Samples.bare(Samples.sameLength), acts: [.cut(request: 1, after: cut)]
            )
            .with { $0.flips = [.afterRequests(1)] }, .complete(1)),
        DownloadRow(
            "N7", "a large file without a validator is never mixed from two versions",
            RangeBehavior(RangeVersion(12 << 20), RangeVersion(12 << 20, place: 31)).with {
                $0.flips = [.afterRequests(1)]
            }, .completeAny,
            audit: { run in
                // Bytes requested after the first part would be of the other version.
                #expect(run.requests.allSatisfy { !$0.isResumption }, "\(run.log)")
            }),
        DownloadRow(
            "N7", "with a checksum the rest is fetched, and the checksum decides",
            earlier: Samples.cutOnce(Samples.bare(one)), keeps: cut, RangeBehavior(Samples.bare(one)),
            .complete(0), change: { $0.checksum = try Samples.sha256(one) },
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
                #expect(run.requests.first?.start == cut)
                #expect(run.requests.first?.ifRange == nil)
                #expect(run.value?.verified.count == 1)
            }),
        DownloadRow(
            "N7", "with a checksum a file that is mixed from two versions is never published",
            earlier: Samples.cutOnce(Samples.bare(one)), keeps: cut,
            RangeBehavior(Samples.bare(Samples.sameLength)), .completeOrFails,
            change: { $0.checksum = try Samples.sha256(Samples.sameLength) },
            audit: { run in
                if let error = run.error { #expect(error.code == .checksumMismatch, "\(run.log)") }
            }),
    ]

    private static let unverified: [DownloadRow] = [
        DownloadRow(
            "N7", "unverified resumption fetches the last 64 KiB again, and resumes if they are the same",
            earlier: Samples.cutOnce(Samples.bare(one)), RangeBehavior(Samples.bare(one)), .complete(0),
            change: { $0.resumption = .unverified },
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
                #expect(run.requests.first?.start == cut - 65_536)
                #expect(run.sentByteCount == one.byteCount - cut + 65_536)
            }),
        DownloadRow(
            "N7", "unverified resumption restarts if the last 64 KiB differ",
            earlier: Samples.cutOnce(Samples.bare(one)), RangeBehavior(Samples.bare(Samples.sameLength)),
            .complete(0), change: { $0.resumption = .unverified },
            audit: { run in
                #expect(run.restarts.contains(.overlapDiffers), "\(run.log)")
            }),
        DownloadRow(
            "N7", "unverified resumption restarts if the length differs",
            earlier: Samples.cutOnce(Samples.bare(one)), RangeBehavior(Samples.bare(Samples.two)),
            .complete(0),
            change: { $0.resumption = .unverified }),
        DownloadRow(
            "N7", "unverified resumption restarts if fewer than 64 KiB are stored and differ",
            earlier: Samples.cutOnce(Samples.bare(one), after: 1_000),
            RangeBehavior(Samples.bare(Samples.sameLength)), .complete(0),
            change: { $0.resumption = .unverified }),
        DownloadRow(
            "N7", "with resumption disabled no bytes of an earlier run are used",
            earlier: Samples.cutOnce(), keeps: cut, RangeBehavior(one), .complete(0),
            change: { $0.resumption = .restart }, audit: restartedGeneration),
    ]
}
