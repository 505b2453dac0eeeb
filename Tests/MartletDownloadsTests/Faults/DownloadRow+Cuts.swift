import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension DownloadRow {
    private static let one = Samples.one
    private static let cut = Samples.cut

    /// Rows about ends, resets and stalls, in plaintext and over TLS.
    static let cuts: [DownloadRow] =
        [false, true].flatMap { isSecure in
            [
                cut(.automatic, "with a length", .close, isSecure),
                cut(.chunked(size: 1_000), "in chunks", .close, isSecure),
                cut(.automatic, "with a length", .reset, isSecure),
                cut(.chunked(size: 1_000), "in chunks", .reset, isSecure),
                cut(.automatic, "with a length", .cut, isSecure),
                cut(.chunked(size: 1_000), "in chunks", .cut, isSecure),
            ]
        } + [truncated, oftenCut, silent, silentForEver, resumedTwice]

    private static func cut(
        _ framing: OriginFraming, _ framed: String, _ kind: OriginFault.Kind, _ isSecure: Bool
    ) -> DownloadRow {
        DownloadRow(
            isSecure ? "N12" : "N1",
            "a response \(framed) ended by \(kind)\(isSecure ? " over TLS" : "") is resumed",
            RangeBehavior(one, acts: [.cut(request: 1, after: cut, by: kind)]).with { $0.framing = framing },
            .complete(0), isSecure: isSecure,
            audit: { run in
                #expect(run.requests.count == 2, "\(run.log)")
                if run.requests.last?.isResumption == true {
                    #expect(run.requests.last?.ifRange == "\"one\"", "\(run.log)")
                }
                if kind != .reset { #expect(run.requests.last?.start == cut, "\(run.log)") }
                #expect((run.requests.last?.start ?? 0) <= cut)
                #expect(run.retries.count == 1)
            })
    }

    /// Over TLS a close_notify alert marks the end of a body without a length.
    private static let truncated = DownloadRow(
        "N12", "a body without a length and without a close_notify is incomplete",
        RangeBehavior(one, acts: [.cut(request: 1, after: cut, by: .cut)]).with {
            $0.framing = .untilClose
            $0.ranges = .ignored
        }, .complete(0), isSecure: true,
        audit: { run in
            #expect(run.requests.count == 2, "\(run.log)")
        })

    private static let oftenCut = DownloadRow(
        "N1", "a download that makes progress may be cut any number of times",
        RangeBehavior(one, acts: [.always { $0.fault = OriginFault(.close, afterBodyBytes: 15_001) }]),
        .complete(0), change: { $0.retry.maximumRetries = 1 },
        audit: { run in
            #expect(run.requests.count == 20, "\(run.log)")
            #expect(run.sentByteCount == one.byteCount)
        })

    private static let silent = DownloadRow(
        "N17", "a stalled connection is closed, and another one requests the rest",
        RangeBehavior(
            one, acts: [.onRequest(1) { $0.fault = OriginFault(.stall, afterBodyBytes: cut) }]),
        .complete(0),
        change: {
            // The timeout is long enough for the first bytes to arrive.
            $0.stallTimeout = .seconds(2)
            // On a stalled machine the timeout may end good connections too.
            $0.retry.maximumRetries = 1_000
        },
        audit: { run in
            #expect(run.requests.count >= 2, "\(run.log)")
            #expect(Set(run.requests.map(\.connection)).count >= 2)
            #expect(run.requests.dropFirst().first?.start == cut, "\(run.log)")
        })

    private static let silentForEver = DownloadRow(
        "N17", "a server that always stalls fails the download, and the stored bytes stay",
        RangeBehavior(
            one,
            acts: [
                .onRequest(1) { $0.fault = OriginFault(.stall, afterBodyBytes: cut) },
                RangeResponseOverride(on: { $0.number > 1 }) { $0.fault = OriginFault(.stall) },
            ]),
        .fails([.timedOut]),
        change: {
            $0.stallTimeout = .milliseconds(300)
            $0.retry.maximumRetries = 2
        },
        audit: { run in
            #expect(run.error?.resumableByteCount ?? 0 <= cut, "\(run.log)")
        })

    private static let resumedTwice = DownloadRow(
        "N1", "bytes of an earlier run are not requested again",
        earlier: Samples.cutOnce(), keeps: cut, RangeBehavior(one), .complete(0),
        audit: { run in
            #expect(run.requests.count == 1, "\(run.log)")
            #expect(run.requests.first?.start == cut)
            #expect(run.requests.first?.ifRange == "\"one\"")
            #expect(run.sentByteCount == one.byteCount - cut)
            #expect(run.value?.resumedByteCount == cut)
            #expect(run.value?.receivedByteCount == one.byteCount - cut)
        })
}
