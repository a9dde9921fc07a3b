export default class Shouting {
  constructor(options) {
    this.mark = options.config.mark ?? '!';
  }
  id() {
    return 'shouting';
  }
  async callApi(prompt, context) {
    return {output: `${prompt.toUpperCase()} ${context.vars.word}${this.mark}`, tokenUsage: {prompt: 1, completion: 2}};
  }
}
