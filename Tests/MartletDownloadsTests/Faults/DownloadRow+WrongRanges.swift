import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension DownloadRow {
    /// A response with another part than the requested one.
    private struct Lie: Sendable {
        var id = "N3"
        var name: String
        var change: @Sendable (inout RangeResponse) -> Void

        /// Makes a response with a wrong Content-Range.
        static func says(_ values: String...) -> Lie {
            let said = values.isEmpty ? "no Content-Range" : values.joined(separator: " and ")
            return Lie(name: "\"\(said)\"") { answer in
                answer.fields["Content-Range"] = nil
                for value in values { answer.fields.append("Content-Range", value) }
            }
        }
    }

    /// Rows about parts that differ from the requested ones.
    static let lies: [DownloadRow] =
        resumed.map { lie in
            DownloadRow(
                lie.id, "a resumption that is rejected for \(lie.name) requests the whole file once",
                earlier: Samples.cutOnce(), keeps: Samples.cut,
                RangeBehavior(Samples.one, acts: [.onRanges(lie.change)]), .complete(0),
                audit: { run in
                    #expect(run.requests.count <= 3, "\(run.log)")
                    #expect(run.requests.last?.range == nil, "\(run.log)")
                })
        }
        + first.map { lie in
            DownloadRow(
                lie.id, "a first range that is rejected for \(lie.name) requests the whole file once",
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
            Lie(name: "an end past that of the file") {
                $0.fields["Content-Range"] = "bytes 100000-300000/300000"
            },
        ]

    private static let first: [Lie] =
        common + [
            .says("bytes 0-299999/300000", "bytes 0-299998/300000"),
            Lie(name: "a later start") { $0.send(1_000..<total) },
        ]

    /// Servers that respond with wrong parts to any request.
    private static let hopeless: [DownloadRow] = [
        DownloadRow(
            "N3", "only wrong ranges are an error that says what arrived",
            RangeBehavior(
                Samples.one,
                acts: [
                    .always {
                        $0.status = 206
                        $0.send(5..<total)
                    }
                ]),
            .fails([.rangeRejected, .unacceptableStatus, .protocolViolation], saying: ["5-299999/300000"]),
            audit: { run in
                #expect(run.requests.count <= 3, "\(run.log)")
            }),
        DownloadRow(
            "N3", "only wrong ranges keep the bytes of an earlier run",
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
                [.rangeRejected, .unacceptableStatus, .protocolViolation], saying: ["150000-299999/300000"]),
            audit: { run in
                #expect(run.requests.count <= 3, "\(run.log)")
            }),
    ]

    /// Parts that are valid, though they differ from the requested ones (RFC 9110 §15.3.7).
    private static let shifted: [DownloadRow] = [
        DownloadRow(
            "N4", "a range that starts earlier is accepted, and its overlap discarded",
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
            "N4", "the whole file as a range is accepted, and its overlap discarded",
            earlier: Samples.cutOnce(), keeps: Samples.cut,
            RangeBehavior(Samples.one, acts: [.onResumptions { $0.send(0..<total) }]), .complete(0),
            audit: { run in
                #expect(run.requests.count == 1, "\(run.log)")
            }),
        DownloadRow(
            "N4", "a range that ends earlier is accepted, and the rest requested",
            earlier: Samples.cutOnce(), keeps: Samples.cut,
            RangeBehavior(
                Samples.one,
                acts: [
                    .onRequest(1) { $0.send($0.body.lowerBound..<$0.body.lowerBound + 50_000) }
                ]), .complete(0)),
        DownloadRow(
            "N4", "a first range that is shorter than requested is accepted, and the rest requested",
            RangeBehavior(Samples.one, acts: [.onRequest(1) { $0.send(0..<70_000) }]), .complete(0)),
    ]
}
