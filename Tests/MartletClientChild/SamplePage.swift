package import Martlet
package import MartletTesting

/// Pages that are never the same twice, and say themselves what belongs to them, so that whoever finds one can tell a wrong
/// byte.
package enum SamplePage {
    /// A page of a version of its own, fresh for ten minutes.
    ///
    /// Half of the pages are shorter than 2,000 bytes and lie in their entry; the others have up to `maximum`.
    package static func answer(_ request: OriginRequest, version: UInt64, maximum: UInt64) -> OriginResponse {
        var generator = SeededGenerator(seed: version)
        let count = generator.next() % (generator.next() % 2 == 0 ? min(2000, maximum) : maximum)
        return answer(request, version: version, count: count)
    }

    /// A page of a version of its own and of a length, fresh for ten minutes.
    package static func answer(_ request: OriginRequest, version: UInt64, count: UInt64) -> OriginResponse {
        OriginResponse(
            200,
            fields: [
                "Cache-Control": "max-age=600", "X-Path": request.path, "X-Version": "\(version)",
                "X-Count": "\(count)",
            ], body: .pattern(count, from: version))
    }

    /// Whether an answer is just what was sent for a path, whichever version of it.
    package static func isRight(_ exchange: HTTPExchange, _ path: String) -> Bool {
        func field(_ name: String) -> String? {
            HTTPField.Name(name).flatMap { exchange.response.headerFields[$0] }
        }
        guard exchange.statusCode == 200, field("X-Path") == path,
            let version = field("X-Version").flatMap({ UInt64($0) }),
            let count = field("X-Count").flatMap({ Int($0) }), exchange.body.count == count
        else { return false }
        return TestPattern.firstMismatch(in: exchange.body, at: version) == nil
    }
}
