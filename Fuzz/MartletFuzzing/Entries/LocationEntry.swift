import MartletURL
import HTTPTypes
import MartletCore
import MartletWire

extension FuzzEntry {
    /// Redirects: a URL in the first line, and values of `Location` after it.
    ///
    /// A followed target has the scheme http or https, no downgrade and no user info, and survives formatting and
    /// parsing. It is reported as cross-origin exactly if the origin changes, and then no credentials are forwarded.
    static let location = FuzzEntry("location") { (bytes) throws(FuzzFinding) in
        let lines = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
        guard lines.count == 2,
            let base = try URLRules.parsed(String(decoding: lines[0], as: UTF8.self), pathAsIs: false)
        else { return }
        for status in [301, 303, 307] {
            guard let head = head(status, lines[1]) else { return }
            for method in [HTTPRequest.Method.get, .post] {
                let rule = RedirectRule(policy: .follow())
                let decision = rule.decide(head, from: base, method: method, isReplayable: true, followed: 0)
                guard case .follow(let redirect) = decision else { continue }
                try check(redirect, from: base, by: rule)
            }
        }
    }

    /// Returns a response head with the lines as values of `Location`; `nil` if they are not valid fields.
    private static func head(_ status: Int, _ values: ArraySlice<UInt8>) -> ResponseHead? {
        var bytes = Array("HTTP/1.1 \(status) x\r\n".utf8)
        for value in values.split(separator: 0x0A, omittingEmptySubsequences: false) {
            bytes += Array("Location: ".utf8) + value + Array("\r\n".utf8)
        }
        bytes += Array("\r\n".utf8)
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        guard case .head(let head, _)? = try? machine.receive(bytes.span).event else { return nil }
        return head
    }

    private static func check(
        _ redirect: RedirectRule.Redirect, from base: HTTPURL, by rule: RedirectRule
    ) throws(FuzzFinding) {
        let url = redirect.url
        try URLRules(url).check(pathAsIs: false)
        try require(url.user == nil && url.password == nil, "user info in \(url.redacted)")
        try require(base.scheme == .http || url.scheme == .https, "a step down from \(base) to \(url)")
        try require(redirect.leavesOrigin == (url.origin != base.origin), "leaving \(base) for \(url)")
        var fields = HTTPFields()
        fields[.authorization] = "secret"
        fields[.cookie] = "secret"
        fields[.proxyAuthorization] = "secret"
        let kept = rule.fields(fields, after: redirect)
        try require(!redirect.leavesOrigin || kept.isEmpty, "credentials go from \(base) to \(url)")
    }
}
