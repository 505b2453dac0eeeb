/// The links of an HTML page: the values of `href` in its `a` elements.
struct HTMLLinks {
    /// The targets as they are in the page, with character references decoded.
    let targets: [String]

    init(in html: String) {
        // A crawler of many sites needs a real parser; this is enough for well-formed pages.
        let link = /<a\s[^>]*?\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))/.ignoresCase()
        targets = html.matches(of: link).map { match in
            let value = match.1 ?? match.2 ?? match.3 ?? ""
            return value.replacing("&amp;", with: "&").description
        }
    }
}
