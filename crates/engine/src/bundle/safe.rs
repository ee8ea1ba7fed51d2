//! JSON without its secrets: every text in it goes through the redactor, and it stays JSON.

use bivouac_core::redact::Redactor;
use serde_json::Value;

pub(super) struct Blotter {
    redactor: Redactor,
}

impl Blotter {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor }
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// A document.
    pub(super) fn value(&self, value: &mut Value) {
        self.redactor.redact_json(value);
    }

    /// A line of someone's.
    pub(super) fn line(&self, text: &str) -> String {
        self.redactor.redact(text)
    }

    /// A file of an agent's: a document, a document to a line, or just text.
    pub(super) fn text(&self, text: &str) -> String {
        if let Some(safe) = self.document(text) {
            return safe;
        }
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        if self.document(first).is_none() {
            return self.redactor.redact(text);
        }
        let lines = text.split_inclusive('\n').map(|line| {
            let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
            self.document(body).unwrap_or_else(|| self.redactor.redact(body)) + end
        });
        lines.collect()
    }

    /// What has no secrets stays as it is, to the letter.
    fn document(&self, text: &str) -> Option<String> {
        let before: Value = serde_json::from_str(text).ok()?;
        let mut after = before.clone();
        self.value(&mut after);
        Some(if after == before { text.to_owned() } else { after.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "-----BEGIN RSA PRIVATE KEY-----\nMIIE";

    #[test]
    fn json_stays_json() {
        let blotter = Blotter::new(Redactor::knowing([]));
        let mut value = json!({
            "password": "hunter22 and more", "n": 1.0, "note": KEY,
            "deep": [{ "text": "export API_KEY=abcdef123456" }],
        });
        blotter.value(&mut value);
        let expected = json!({
            "password": "[redacted]", "n": 1.0, "note": "[redacted]",
            "deep": [{ "text": "export API_KEY=[redacted]" }],
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn lines_without_secrets_stay_to_the_letter() {
        let blotter = Blotter::new(Redactor::knowing([]));
        let text = format!(
            "{{\"a\" : 1.50}}\n{}\nnot json password=hunter22\n{{\"torn",
            json!({ "note": KEY, "more": "ok" })
        );
        assert_eq!(
            blotter.text(&text),
            "{\"a\" : 1.50}\n{\"note\":\"[redacted]\",\"more\":\"ok\"}\nnot json password=[redacted]\n{\"torn"
        );
        assert_eq!(blotter.text("plain password=hunter22"), "plain password=[redacted]");
        assert_eq!(blotter.text(""), "");
    }
}
