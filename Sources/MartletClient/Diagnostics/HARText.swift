import FoundationEssentials

/// A body as a HAR log holds it: as text where it is text, else in Base64, and no more than its limit.
package struct HARText {
    /// The text, or the bytes in Base64; `nil` where there is too much of them.
    package let text: String?
    /// Whether ``text`` is Base64.
    package let isBase64: Bool
    /// What was left out; `nil` for nothing.
    package let comment: String?

    /// What is shown of a body of a type.
    /// - Parameter total: How many bytes it had, where fewer are left of it.
    package init(_ bytes: [UInt8], type: MediaType?, limit: Int, of total: Int? = nil) {
        let shown = bytes.prefix(limit)
        let total = max(bytes.count, total ?? 0)
        let isWhole = shown.count == total
        if let text = HARText.decoded(shown, isWhole: isWhole, type) {
            self.text = text
            isBase64 = false
            comment = isWhole ? nil : "the first \(shown.count) of \(total) bytes"
        } else if isWhole {
            text = Data(bytes).base64EncodedString()
            isBase64 = true
            comment = nil
        } else {
            text = nil
            isBase64 = false
            comment = "\(total) bytes, more than are shown"
        }
    }

    private static func decoded(
        _ bytes: ArraySlice<UInt8>, isWhole: Bool, _ type: MediaType?
    ) -> String? {
        if let charset = type?.charset, let encoding = TextDecoding.Encoding(label: charset),
            encoding != .utf8
        {
            return TextDecoding(charset: charset).text(from: bytes)
        }
        guard !bytes.contains(0) else { return nil }
        // Cut within a character, a text is one still.
        for dropped in 0...(isWhole ? 0 : min(3, bytes.count)) {
            if let text = String(validating: bytes.dropLast(dropped), as: UTF8.self) { return text }
        }
        return nil
    }

    /// The members of `postData` that hold it. HAR 1.2 knows no Base64 there, so that it is said in a member of one's own.
    var postMembers: [(name: String, value: HARValue)] {
        var members: [(name: String, value: HARValue)] = [("text", .text(text ?? ""))]
        if isBase64 { members.append(("_encoding", .text("base64"))) }
        if let comment { members.append(("comment", .text(comment))) }
        return members
    }

    /// The members of `content` that hold it.
    var contentMembers: [(name: String, value: HARValue)] {
        var members: [(name: String, value: HARValue)] = []
        if let text { members.append(("text", .text(text))) }
        if isBase64 { members.append(("encoding", .text("base64"))) }
        if let comment { members.append(("comment", .text(comment))) }
        return members
    }
}
