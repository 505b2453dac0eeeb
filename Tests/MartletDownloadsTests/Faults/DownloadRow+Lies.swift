import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension DownloadRow {
    /// An answer that is not the part that was asked for.
    private struct Lie: Sendable {
        var id = "N3"
        var name: String
        var change: @Sendable (inout RangeResponse) -> Void

        /// A wrong Content-Range.
        static func says(_ values: String...) -> Lie {
            let said = values.isEmpty ? "no Content-Range" : values.joined(separator: " and ")
            return Lie(name: "\"\(said)\"") { answer in
                answer.fields["Content-Range"] = nil
                for value in values { answer.fields.append("Content-Range", value) }
            }
        }
    }

    /// N3, N4, N16: parts that are others than those asked for.
    static let lies: [DownloadRow] =
        resumed.map { lie in
            DownloadRow(
                lie.id, "a resumption refused for \(lie.name) is asked for once more, as a whole",
                earlier: Samples.cutOnce(), keeps: Samples.cut,
                RangeBehavior(Samples.one, acts: [.onRanges(lie.change)]), .complete(0),
                audit: { run in
                    #expect(run.requests.count <= 3, "\(run.log)")
                    #expect(run.requests.last?.range == nil, "\(run.log)")
                })
        }
        + first.map { lie in
            DownloadRow(
                lie.id, "a first part refused for \(lie.name) is asked for once more, as a whole",
                RangeBehavior(Samples.one, acts: [.onRanges(lie.change)]), .complete(0),
                audit: { run in
                    #expect(run.requests.count <= 3, "\(run.log)")
                    #expect(run.requests.last?.range == nil, "\(run.log)")
                })
        } + hopeless + shifted

    private static let total = Samples.one.byteCount

    private static let common: [Lie] = [
        .says(), .says("bytes garbage"), .says("bytes 300000-299999/300000"), .says("items 0-299999/300000"),
        .says("bytes 0-299999/100"), .says("bytes 0-299999"), .says("bytes */300000"), .says(""),
        .says("bytes 0-99999999999999999999999/300000"), .says("bytes -1-5/300000"),
        Lie(id: "N16", name: "multipart/byteranges") { answer in
            let boundary = "nest"
            let part = answer.version.bytes(from: 0, count: 1_000)
            var contents = [UInt8]("--\(boundary)\r\nContent-Range: bytes 0-999/300000\r\n\r\n".utf8)
            contents += part
            contents += [UInt8]("\r\n--\(boundary)--\r\n".utf8)
            answer.contents = contents
            answer.fields["Content-Range"] = nil
            answer.fields["Content-Type"] = "multipart/byteranges; boundary=\(boundary)"
        },
    ]

    private static let resumed: [Lie] =
        common + [
            .says("bytes 100000-299999/300000", "bytes 100001-299999/300000"),
            Lie(name: "a later start") { $0.send(101_000..<total) },
            Lie(name: "a start one byte later") { $0.send(100_001..<total) },
            Lie(name: "another length of the file") {
                $0.fields["Content-Range"] = "bytes 100000-299999/300001"
            },
            Lie(name: "an end behind the file's") {
                $0.fields["Content-Range"] = "bytes 100000-300000/300000"
            },
        ]

    private static let first: [Lie] =
        common + [
            .says("bytes 0-299999/300000", "bytes 0-299998/300000"),
            Lie(name: "a later start") { $0.send(1_000..<total) },
        ]

    /// Servers that answer with wrong parts whatever they are asked.
    private static let hopeless: [DownloadRow] = [
        DownloadRow(
            "N3", "wrong parts in answer to everything are an error that says what came",
            RangeBehavior(
                Samples.one,
                acts: [
                    .always {
                        $0.status = 206
                        $0.send(5..<total)
                    }
                ]),
            .fails([.rangeRefused, .unacceptableStatus, .protocolViolation], saying: ["5-299999/300000"]),
            audit: { run in
                #expect(run.requests.count <= 3, "\(run.log)")
            }),
        DownloadRow(
            "N3", "wrong parts in answer to everything leave what an earlier run fetched",
            earlier: Samples.cutOnce(), keeps: Samples.cut,
            RangeBehavior(
                Samples.one,
                acts: [
                    .always {
                        $0.status = 206
                        $0.send(150_000..<total)
                    }
                ]),
            .fails(
                [.rangeRefused, .unacceptableStatus, .protocolViolation], saying: ["150000-299999/300000"]),
            audit: { run in
                #expect(run.requests.count <= 3, "\(run.log)")
            }),
    ]

    /// Parts that are allowed, though they are others than those asked for (RFC 9110 §15.3.7).
    private static let shifted: [DownloadRow] = [
        DownloadRow(
            "N4", "a part that begins earlier is taken, and the overlap dropped",
            earlier: Samples.cutOnce(), keeps: Samples.cut,
            RangeBehavior(
                Samples.one,
                acts: [.onResumptions { $0.send($0.body.lowerBound - 5_000..<$0.body.upperBound) }]),
            .complete(0),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
                #expect(run.value?.resumedByteCount == Samples.cut)
            }),
        DownloadRow(
            "N4", "the whole file as a part is taken, and the overlap dropped",
            earlier: Samples.cutOnce(), keeps: Samples.cut,
            RangeBehavior(Samples.one, acts: [.onResumptions { $0.send(0..<total) }]), .complete(0),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
            }),
        DownloadRow(
            "N4", "a part that ends earlier is taken, and the rest asked for",
            earlier: Samples.cutOnce(), keeps: Samples.cut,
            RangeBehavior(
                Samples.one,
                acts: [
                    .onRequest(1) { $0.send($0.body.lowerBound..<$0.body.lowerBound + 50_000) }
                ]), .complete(0)),
        DownloadRow(
            "N4", "a first part that is shorter than asked for is taken, and the rest asked for",
            RangeBehavior(Samples.one, acts: [.onRequest(1) { $0.send(0..<70_000) }]), .complete(0)),
    ]
}
