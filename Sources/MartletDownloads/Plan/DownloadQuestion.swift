package import MartletClient
import MartletTransport

/// A request that a download makes.
package struct DownloadQuestion: Sendable {
    /// The number of the transfer.
    package var id: UInt64
    /// Where it goes.
    package var url: HTTPURL
    /// The bytes that are asked for; nil for the whole file without `Range`. One that ends at the last number there is has
    /// no end.
    package var range: Range<UInt64>?
    /// What `If-Range` says; nil for none.
    package var condition: String?
    /// When it was asked.
    var time: MonotonicTime
    /// How many of the bytes, from the first, are there already, and are asked for to be compared.
    package var overlap: UInt64 = 0

    /// What was asked, for the judgement of the answer.
    var asked: AnswerRule.Asked { AnswerRule.Asked(range: range, isConditional: condition != nil) }

    /// `Range`; nil for none.
    package var rangeField: String? {
        guard let range else { return nil }
        return range.upperBound == .max
            ? "bytes=\(range.lowerBound)-" : "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
    }
}

/// What a transfer does with the answer to its question.
package enum DownloadReception: Sendable {
    /// Nothing: the body is not read.
    case leave
    /// Writes the body.
    /// - `passingOver`: how many bytes of it do not count.
    /// - `comparing`: how many behind those are to be compared with what is there.
    /// - `beginsAnew`: whether a new file takes the place of what was there.
    case take(passingOver: UInt64, comparing: UInt64, beginsAnew: Bool)
}
