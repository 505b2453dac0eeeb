import MartletClient

extension HTTPURL {
    /// Parses the URL of a download.
    init(downloading text: String) throws(HTTPError) {
        do throws(HTTPURL.ParseError) {
            self = try HTTPURL(text)
        } catch {
            throw HTTPError(.invalidURL, phase: .preparing, message: error.description, underlying: error)
        }
    }
}
